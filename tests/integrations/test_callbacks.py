import importlib
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from crosstail.integrations import _collector

X, Y, DOMAIN = torch.randn(10, 4), torch.arange(10) % 2, torch.arange(10) // 5
ABOUT = {"classes": ["cat", "dog"], "domain_names": ["web", "lab"], "train_counts": [[3, 3], [3, 3]]}


@pytest.fixture
def pages(monkeypatch):
    """What the page would be made from."""
    found = []
    monkeypatch.setattr(_collector, "write_report", lambda out, **given: found.append({"out": out, **given}))
    return found


@pytest.fixture
def imported(monkeypatch):
    """Import a module of ours with a stand-in for the library of its callback."""

    def make(name, **libraries):
        for library, content in libraries.items():
            monkeypatch.setitem(sys.modules, library, SimpleNamespace(**content, __spec__=None))
        monkeypatch.delitem(sys.modules, f"crosstail.integrations.{name}", raising=False)
        return importlib.import_module(f"crosstail.integrations.{name}")

    return make


@pytest.fixture
def lightning(imported, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # the package `lightning` is not installed
    return imported("lightning", pytorch_lightning={"Callback": object})


class Model(nn.Linear):
    def features(self, x):
        return 2 * x


def evaluate(callback, model, kind, *, sanity=False, world_size=1, batch=None):
    trainer = SimpleNamespace(world_size=world_size, sanity_checking=sanity, global_step=12)
    getattr(callback, f"on_{kind}_start")(trainer, model)
    for rows in (slice(0, 6), slice(6, 10)):
        getattr(callback, f"on_{kind}_batch_end")(trainer, model, None, batch or (X[rows], Y[rows], DOMAIN[rows]), 0)
    getattr(callback, f"on_{kind}_end")(trainer, model)


def test_lightning(lightning, pages):
    model = Model(4, 2)
    callback = lightning.PairReport("page.html", **ABOUT, features=Model.features)
    evaluate(callback, model, "validation", sanity=True)
    assert pages == []
    evaluate(callback, model, "validation")
    evaluate(callback, model, "test")
    validation, test = pages
    for page in pages:
        assert page["out"] == "page.html" and page["classes"] == ABOUT["classes"]
        assert page["predictions"].tolist() == model(X).argmax(1).tolist()
        assert page["labels"].tolist() == Y.tolist() and page["domains"].tolist() == DOMAIN.tolist()
        assert page["features"].tolist() == (2 * X).tolist()
    assert "step 12" in validation["title"] and "validation samples" in validation["notes"][0]
    assert test["title"] == "Model" and "notes" not in test


def test_lightning_says_what_it_needs(lightning, pages):
    callback = lightning.PairReport("page.html", **ABOUT)
    with pytest.raises(ValueError, match=r"devices=1"):
        evaluate(callback, Model(4, 2), "test", world_size=2)
    with pytest.raises(ValueError, match=r"a batch is a dict, expected \(x, y, domain\)"):
        evaluate(callback, Model(4, 2), "test", batch={"x": X})
    assert pages == []


class Outputs(nn.Linear):
    def forward(self, pixel_values, labels, output_hidden_states=False):
        hidden = [pixel_values] if output_hidden_states else None
        return SimpleNamespace(logits=super().forward(pixel_values), hidden_states=hidden)


@pytest.mark.parametrize("features", [None, lambda outputs: outputs.hidden_states[-1]])
def test_transformers(imported, pages, features):
    module = imported("transformers", transformers={"TrainerCallback": object})
    callback = module.PairReport("page.html", domains=DOMAIN.tolist(), **ABOUT, features=features)
    model = Outputs(4, 2).train()
    batches = [{"pixel_values": X[i : i + 4], "labels": Y[i : i + 4], "domain": DOMAIN[i : i + 4]} for i in (0, 4, 8)]
    args, state = SimpleNamespace(world_size=1), SimpleNamespace(global_step=30)
    callback.on_evaluate(args, state, None, model=model, eval_dataloader=batches)
    (page,) = pages
    assert page["predictions"].tolist() == nn.Linear.forward(model, X).argmax(1).tolist() and model.training
    assert page["labels"].tolist() == Y.tolist() and page["domains"].tolist() == DOMAIN.tolist()
    assert ("features" in page) == (features is not None) and "step 30" in page["title"]
    with pytest.raises(ValueError, match="one process"):
        callback.on_evaluate(SimpleNamespace(world_size=2), state, None, model=model, eval_dataloader=batches)
