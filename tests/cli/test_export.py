"""crosstail export: with or without the run's data, and the recipe of its card applied by hand."""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

SHORT = "--width 8 --steps 20 --batch-size 6 --evaluations 1"


def test_checks_on_the_test_set_or_else_on_random_inputs(crosstail, vectors):
    crosstail(f"fit {vectors} --out run {SHORT}").ok()
    done = crosstail("export run --out m.pt2 --format torch").ok()
    assert "48 of the test samples of v, it predicts the same classes" in done.out and Path("m.pt2.json").exists()
    exported, own = (Path(card).read_text(encoding="utf-8") for card in ("m.pt2.md", "run/model_card.md"))
    title, _, rest = own.partition("\n\n")
    assert exported.startswith(f"{title}\n\n## File\n\n- Format torch; input x: float32") and exported.endswith(rest)
    assert "on 48 of the test samples of v" in exported
    Path(vectors).unlink()
    done = crosstail("export run --out n.pt2 --format torch --json")
    assert json.loads(done.out)["inputs"] == "random inputs"
    assert "v.npz" in done.err


def test_a_difference_is_a_failed_job(crosstail, vectors, monkeypatch):
    crosstail(f"fit {vectors} --out run {SHORT}")
    monkeypatch.setattr("crosstail.prediction.export.TOLERANCE", -1.0)
    done = crosstail("export run --out m.pt2 --format torch")
    assert done.code == 1 and "differs from the run" in done.err
    assert not Path("m.pt2").exists()


def test_mistakes_are_named(refused):
    assert "nowhere" in refused("export nowhere --out m.onnx")


@pytest.mark.slow
def test_the_recipe_of_the_card_gives_the_predictions_of_the_run(crosstail):
    rng = np.random.default_rng(0)
    for name, light in (("dark", 20), ("light", 150)):
        for domain in ("inside", "outside"):
            folder = Path("photos") / domain / name
            folder.mkdir(parents=True)
            for i in range(8):
                coarse = Image.fromarray((rng.integers(0, 80, (6, 9, 3)) + light).astype(np.uint8))
                coarse.resize((300, 260), Image.Resampling.BICUBIC).save(folder / f"{i}.png")
    crosstail(f"fit photos --out run {SHORT}").ok()
    crosstail("export run --out m.onnx").ok()
    card = json.loads(Path("m.onnx.json").read_text(encoding="utf-8"))
    assert card["input"]["shape"] == ["batch", 224, 224, 3] and "central square" in card["input"]["how"]
    files = sorted(Path("photos/inside").rglob("*.png"))
    views = []
    for file in files:
        image = Image.open(file)
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        views.append(
            np.asarray(image.crop((left, top, left + side, top + side)).resize((224, 224), Image.Resampling.BILINEAR))
        )
    given = {"x": np.stack(views), "site": np.full(len(views), -1)}
    (found,) = onnxruntime.InferenceSession("m.onnx").run(["probabilities"], given)
    rows = json.loads(crosstail("predict run photos/inside --json").out)
    expected = np.array([[row["probabilities"][name] for name in card["classes"]] for row in rows])
    assert [row["input"] for row in rows] == [str(file) for file in files]
    np.testing.assert_allclose(found, expected, atol=0.02)
