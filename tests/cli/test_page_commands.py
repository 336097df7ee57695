"""Every command on a page runs as it stands there, on data with broken files, groups, own columns and spaces."""

import html
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail.sweeps import worker
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.launchers.inline import Inline

SHORT = "--algorithm erm --second-stage retrain --backbone small_cnn --resolution 8 --width 8 --steps 2 --evaluations 1"
TRAIN = f"{SHORT} --batch-size 2 --data-seed 3"
QUICK = {"race": "--algorithm erm --trials 1 --seeds 1 --steps 2 --batch-size 2", "fit": "--steps 2 --evaluations 1"}
"""Options that make a command short where its page leaves the budget to the default."""


def save_photos(root):
    """Photos of patients, 2 domains × 2 classes, of which one is broken and one class has a space after its name."""
    rng = np.random.default_rng(0)
    for pair, folder in enumerate(("day shift/plain", "day shift/striped", "night/plain", "night/striped ")):
        (root / folder).mkdir(parents=True)
        for i in range(16):
            pixels = rng.integers(0, 255, (12, 12, 3), np.uint8)
            Image.fromarray(pixels).save(root / folder / f"p{8 * pair + i // 2} {i}.png")
    (root / "night/plain/p16 0.png").write_bytes(b"no picture")


def save_list(root, *header):
    """The same with a column of patients, a photo that is not there, and other names of the columns."""
    rows = []
    for file in sorted(root.rglob("*.png")):
        domain, name, photo = file.relative_to(root).parts
        rows.append(f"{domain}/{name}/{photo},{domain},{name.strip()},{photo.split()[0]}")
    rows.append("night/plain/missing.png,night,plain,p40")
    (root / "my list.csv").write_text("\n".join([",".join(header), *rows]), encoding="utf-8")


def commands_in(text):
    """The complete commands in a page or on the terminal."""
    lines = re.findall(r"<(?:code|pre)>(?:<span>)?(crosstail .*?)</", text, re.DOTALL)
    lines += re.findall(r"^(?:Next: |    )?(crosstail (?!.*   ).*)$|`(crosstail [^`]*)`", text, re.MULTILINE)
    found = [html.unescape(line) for one in lines for line in ([one] if isinstance(one, str) else one) if line]
    words = [shlex.split(line) for line in found]
    return {shlex.join(line[1:]): None for line in words if len(line) > 2 and not line[2].startswith("-")}


def again(command):
    """Whether the pages of later runs have the command once more, only longer."""
    verb = command.split()[0]
    return verb in ("race", "export") or (verb == "fit" and "--hparams" not in command)


SOURCES = {
    "folder": ("'my photos'", "--group-by '/(p[0-9]+) ' --names merge"),
    "manifest": ("'my photos/my list.csv'", "--column domain=site --column label=kind --column 'group=patient id'"),
    "leak": ("'my photos/my list.csv'", "--column path=file"),
}
HEADERS = {"manifest": ("path", "site", "kind", "patient id"), "leak": ("file", "domain", "label", "case")}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_command_on_the_pages_of_a_run_runs(crosstail, full_page, monkeypatch, source):
    worker._load.cache_clear()
    worker._source.cache_clear()
    monkeypatch.setattr(_launcher, "launcher", lambda name, store, resources: Inline(store, resources))
    save_photos(Path("my photos"))
    if source in HEADERS:
        save_list(Path("my photos"), *HEADERS[source])
    data, read = SOURCES[source]
    todo = [f"fit {data} {read} --skip-broken {TRAIN} --out 'my run'"]
    todo.append(f"audit {data} {read} --skip-broken --out audit.html")
    todo.append(f"evaluate 'my run' {data} {read} --skip-broken --split test")
    done: dict[str, None] = {}
    for depth in range(3):
        texts = []
        for command in todo:
            verb, *_, made = shlex.split(command)
            if made == "run":  # what both races suggest
                shutil.rmtree("run", ignore_errors=True)
            shorter = "" if depth == 0 or Path(made, "result.json").exists() else QUICK.get(verb, "")
            ended = crosstail(f"{command} {shorter}")
            assert ended.code == 0, f"{command}: {ended.err}"
            texts += [ended.out, ended.err]
        done |= dict.fromkeys(todo)
        texts += [page.read_text(encoding="utf-8") for page in (*Path().rglob("*.html"), *Path().rglob("*.md"))]
        found = [command for text in texts for command in commands_in(text) if command not in done]
        todo = [command for command in dict.fromkeys(found) if depth == 0 or not again(command)]
    assert {command.split()[0] for command in done} == {"fit", "audit", "evaluate", "race", "predict", "export"}
    trained = [command for command in done if command.startswith(("fit", "race")) and "--out 'my run'" not in command]
    assert len(trained) > 4 and (source != "leak" or all("group=case" in command for command in trained))
