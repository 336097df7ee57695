"""The BoDA loss in the transforms of `torch.func` and in a graph that `torch.compile` captures as a whole."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.losses.test_boda import METRICS, Problem, Reads, make
from torch import Tensor
from torch.func import functional_call, grad, vmap

from crosstail.losses import BoDALoss

OPTIONS: list[dict[str, Any]] = [
    {},
    {"rescaled": True},
    {"balanced": False, "reduction": "positives"},
    {"pooled": True, "validate": False},
    {"negatives": 5},
]


def loss_of(p: Problem, options: dict[str, Any]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda z, y, domain: replace(p, z=z, y=y, domain=domain).loss(**options)


def gradient(loss: Callable[..., Tensor], z: Tensor, *labels: Tensor) -> Tensor:
    torch.manual_seed(0)  # of the sampled negatives
    z = z.detach().clone().requires_grad_()
    return torch.autograd.grad(loss(z, *labels), z)[0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", OPTIONS)
def test_grad(options: dict[str, Any], metric: str) -> None:
    p = make(3, absent=0.2, metric=metric)
    loss = loss_of(p, options)
    torch.manual_seed(0)
    torch.testing.assert_close(grad(loss)(p.z, p.y, p.domain), gradient(loss, p.z, p.y, p.domain))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", OPTIONS)
def test_gradients_of_each_sample(options: dict[str, Any], metric: str) -> None:
    p = make(3, absent=0.2, metric=metric)
    p = replace(p, z=torch.cat([p.z[1:], p.centroids[p.domain[:1], p.y[:1]]]))  # one is on a centroid
    loss = loss_of(p, options)

    def of_one(*sample: Tensor) -> Tensor:
        return loss(*(value[None] for value in sample))

    torch.manual_seed(0)
    found = vmap(grad(of_one), randomness="same")(p.z, p.y, p.domain)
    expected = [gradient(of_one, *sample) for sample in zip(p.z, p.y, p.domain, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))
    assert found.abs().sum() > 0


def test_the_module_as_a_function_of_its_statistics() -> None:
    p = make(3).to(torch.float32)
    criterion, other = (BoDALoss(3, 4, 5, p.counts) for _ in range(2))
    state = dict(criterion.named_buffers())

    def loss(z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        buffers = {name: value.clone() for name, value in state.items()}
        return functional_call(criterion, buffers, (z, p.y, p.domain)), buffers

    found, buffers = grad(loss, has_aux=True)(p.z)
    torch.testing.assert_close(found, gradient(other, p.z, p.y, p.domain))
    assert int(criterion.statistics.counts.sum()) == 0
    torch.testing.assert_close(buffers["statistics.mean"], other.statistics.mean)


def compiled_by(backend: Any, options: dict[str, Any], metric: str) -> None:
    """The loss and its gradient in one graph are those of the function."""
    torch._dynamo.reset()
    p = make(3, absent=0.2, metric=metric)
    loss = loss_of(p, options)
    whole = torch.compile(loss, fullgraph=True, backend=backend)
    torch.testing.assert_close(gradient(whole, p.z, p.y, p.domain), gradient(loss, p.z, p.y, p.domain))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the compiler's own modules
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", OPTIONS)
def test_one_graph_without_reads(options: dict[str, Any], metric: str) -> None:
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    found: list[list[str]] = []

    def watched(graph: Any, inputs: Any) -> Any:
        def run(*given: Any) -> Any:
            with Reads() as reads:
                result = graph(*given)
            found.append(reads.found)
            return result

        return make_boxed_func(run)

    compiled_by(aot_autograd(fw_compiler=watched), options, metric)
    assert found == [[], []]  # forward and backward


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("options", [{}, {"rescaled": True}])
def test_compiled(options: dict[str, Any]) -> None:
    compiled_by("inductor", options, "euclidean")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("covariance", ["none", "diagonal"])
def test_the_module_with_its_statistics_in_one_graph(covariance: Any) -> None:
    torch._dynamo.reset()
    plain, other = (BoDALoss(3, 4, 5, make(3).counts, covariance=covariance) for _ in range(2))
    whole = torch.compile(other, fullgraph=True, backend="aot_eager")
    for seed in range(3):
        p = make(seed).to(torch.float32)
        found, expected = (gradient(of, p.z, p.y, p.domain) for of in (whole, plain))
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value)
