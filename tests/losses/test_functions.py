"""The losses of the table in docs/reference/losses.md: each line runs, and its gradient is the loss's."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck

from crosstail.losses import contrastive, domains, tails

PAGE = (Path(__file__).parents[2] / "docs/reference/losses.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\|.*\| `(.+)` \|$", PAGE, re.MULTILINE)
PURE = [line for line in LINES if not line.startswith(("tails.seesaw", "tails.gcl", "tails.hard"))]


@pytest.fixture
def given() -> dict[str, Any]:
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    (setup,) = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
    exec(setup, names)
    return names


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_table_is_one_number_with_a_gradient(line: str, given: dict[str, Any]) -> None:
    loss = eval(line, given)
    loss.backward()
    assert loss.ndim == 0 and bool(loss.isfinite()) and float(given["z"].grad.abs().sum()) > 0


@pytest.mark.parametrize("line", PURE)  # the others treat probabilities as constants, or draw
def test_gradients(line: str, given: dict[str, Any]) -> None:
    z, head = given["z"].detach().double().requires_grad_(), given["head"].double()

    def loss(z: torch.Tensor) -> torch.Tensor:
        scores = head(z)
        errors = torch.nn.functional.cross_entropy(scores, given["y"], reduction="none")
        names = given | {"z": z, "scores": scores, "errors": errors, "prototypes": given["prototypes"].double()}
        return eval(line, names)

    assert gradcheck(loss, (z,), atol=1e-4)  # the tables of counts are in float32


@pytest.mark.parametrize("module", [contrastive, domains, tails])
def test_the_table_has_every_loss(module: Any) -> None:
    assert module.__file__
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    losses = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    named = {name for name in losses if name.endswith(("_loss", "_penalty", "_penalties", "_entropy", "_quantile"))}
    assert named and named <= {*re.findall(r"\w+", " ".join(LINES))}


def test_the_gradients_in_the_scale_are_those_of_autograd() -> None:
    torch.manual_seed(0)
    scores, y, w = torch.randn(6, 3).double(), torch.arange(6) % 3, torch.ones(6, 1, dtype=torch.float64)
    errors = torch.nn.functional.cross_entropy(w.requires_grad_() * scores, y, reduction="sum")
    torch.testing.assert_close(domains.scale_gradients(scores, y), torch.autograd.grad(errors, w)[0][:, 0])


def test_the_variances_of_fishr_are_those_of_the_gradients_of_each_sample() -> None:
    torch.manual_seed(0)
    z, y, head = torch.randn(2, 5, 3).double(), torch.arange(10).view(2, 5) % 4, torch.nn.Linear(3, 4).double()
    each = []
    for of_domain, classes in zip(z, y, strict=True):
        gradients = []
        for sample, label in zip(of_domain, classes, strict=True):
            error = torch.nn.functional.cross_entropy(head(sample), label)
            weight, bias = torch.autograd.grad(error, [head.weight, head.bias])
            gradients.append(torch.cat([weight, bias[:, None]], 1))
        each.append(torch.stack(gradients).var(0, correction=0))
    found = domains.gradient_variance(z, head(z), y)
    torch.testing.assert_close(found, torch.stack(each))
    expected = (torch.stack(each) - torch.stack(each).mean(0)).square().mean()
    torch.testing.assert_close(domains.fishr_penalty(z, head(z), y), expected)


def test_a_batch_is_sorted_by_domain_if_each_has_as_many_samples() -> None:
    domain = torch.tensor([4, 1, 1, 4])
    assert domains.by_domain(torch.arange(4), domain).tolist() == [[1, 2], [0, 3]]
    with pytest.raises(ValueError, match=r"the domains have \[2, 1\] samples in this batch, expected the same number"):
        domains.by_domain(torch.arange(3), domain[1:])
