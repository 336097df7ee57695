"""What a command imports: torch takes seconds, and what it does not need would take as long again."""

import subprocess
import sys

import pytest

LISTED = """
import gc
import sys
from crosstail.cli import main
for words in {commands!r}:
    try:
        main(words.split())
    except SystemExit as ended:
        assert ended.code in (0, 2), words
assert gc.isenabled() and (gc.get_freeze_count() > 100_000) == ("torch" in sys.modules)
print("imported:", *(name for name in {heavy!r} if name in sys.modules))
"""
HEAVY = ["torch", "pandas", "scipy", "vl_convert"]
WITHOUT_TORCH = [
    "--version",
    "--help",
    "fit --help",
    "list algorithms",
    "list backbones",
    "list second-stages",
    "list datasets --json",
    "status nowhere",
    "fit wrongfolder --out run",
    "fit wrong/folder.csv --out run",
    "fit v.npz --out run --algorithm bodda",
    "fit v.npz --out run --algorithm boda:retrian",
    "fit v.npz --out run --backbone resnet5",
    "fit v.npz --out run --accelerator gpu",
    "fit v.npz --out run --log tensorbord",
    "fit v.npz --out run --hparams none.json",
    "race wrongfolder --out race",
    "race v.npz --algorithm bodda --out race",
    "sweep wrongfolder --algorithm erm --out sweep",
    "sweep v.npz --algorithm erm --launcher rey --out sweep",
    "audit wrongfolder",
    "embed wrongfolder --out e.npz",
    "predict nowhere v.npz",
    "evaluate nowhere v.npz",
    "export nowhere --out m.onnx",
    "graph nowhere",
]
NOT_ON_VECTORS = [
    *("timm", "torchvision", "sklearn", "lightning_fabric", "torchmetrics", "transformers", "huggingface_hub"),
    *("torch._dynamo", "torch.onnx", "sympy", "scipy.stats", "onnx", "matplotlib", "altair", "jsonschema"),
    *("torch._inductor", "torch.distributed.fsdp", "networkx", "tensorboard", "ray", "datasets"),
]


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [
        (WITHOUT_TORCH, HEAVY),
        (
            [
                "fit v.npz --out default",
                *(
                    f"fit v.npz --algorithm {name} --steps 4 --evaluations 1 --out {name}"
                    for name in ("erm", "boda", "coral")
                ),
                "predict default v.npz --out classes.csv",
            ],
            NOT_ON_VECTORS,
        ),
    ],
    ids=["without torch", "fit on vectors"],
)
def test_what_is_not_imported(vectors, tmp_path, commands, heavy):
    code = LISTED.format(commands=commands, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported:"
