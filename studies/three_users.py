"""Play three new users, and keep the time and output of every command, and a picture of every page.

A practitioner with photos, a researcher, and the author of a training loop. On the embedded data in five minutes, or
on a data set of your own; pictures need chromium:

    python -m studies.three_users --out tour
    python -m studies.three_users --out tour --data ../shared/data/office-caltech10
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageChops

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PRACTITIONER = """
audit {data} --out audit.html
race {data} --algorithm erm --algorithm bsoftmax --algorithm boda --steps 100 --out race
fit {data} --tune none --out run
evaluate run {data} --split test
export run
predict run {files} --coverage 0.9 --out answers.csv
export run --format torch --out model.pt2
"""
RESEARCHER = """
list algorithms boda
new algorithm mine
fit {data} --tune none --algorithm ./mine.py --steps 100 --out mine
fit {data} --tune none --algorithm erm --steps 100 --out erm
compare mine erm --out compare.html
sweep {data} --tune none --algorithm erm --algorithm boda --steps 50 --trials 2 --seeds 2 --out sweep
report sweep --out report
graph erm --out graph.html
fit {data} --tune none --protocol dg --steps 50 --algorithm erm --out dg
"""
LOOP = ["loop_pytorch.py", "loop_lightning.py", "loop_transformers.py"]
WIDTHS, HEIGHT = (390, 1440), 16_000  # above the longest page; what is empty below it is cut off
COLOURS = {"light": 1, "dark": 0}


def play(words: list[str], out: Path, number: int) -> bool:
    """Run a command in the folder; keep what it prints, and how long it takes."""
    began = time.perf_counter()
    done = subprocess.run(words, cwd=out, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    said = shlex.join([Path(words[0]).name, *words[1:]])
    kept = out / f"{number:02}.txt"
    kept.write_text(f"$ {said}\n{done.stdout}{done.stderr}\n{seconds:.1f} s, exit code {done.returncode}\n")
    print(f"{seconds:6.1f} s  {'ok    ' if done.returncode == 0 else 'FAILED'}  {said}", flush=True)
    return done.returncode == 0


def picture(page: Path, out: Path) -> None:
    """Screenshots of a page at two widths, light and dark, and as it is printed."""
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    browser += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    name = "-".join(page.relative_to(out).with_suffix("").parts)
    jobs = [
        [
            f"--window-size={width},{HEIGHT}",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--screenshot={out}/pictures/{name}-{width}-{colour}.png",
        ]
        for width in WIDTHS
        for colour, scheme in COLOURS.items()
    ]
    with tempfile.TemporaryDirectory() as profile:
        browser += [f"--user-data-dir={profile}", "--virtual-time-budget=4000"]
        for job in [*jobs, [f"--print-to-pdf={out}/pictures/{name}.pdf"]]:
            subprocess.run([*browser, *job, page.as_uri()], capture_output=True, check=True)
    for file in (out / "pictures").glob(f"{name}-*.png"):
        whole = Image.open(file).convert("RGB")
        blank = Image.new("RGB", whole.size, whole.getpixel((whole.width - 1, whole.height - 1)))
        _, _, _, bottom = ImageChops.difference(whole, blank).getbbox() or (0, 0, 0, whole.height)
        whole.crop((0, 0, whole.width, min(bottom + 20, whole.height))).save(file)


def main() -> None:
    """Play all three, then take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", help="a folder of photos, or digits")
    parser.add_argument("--out", type=Path, default=Path("tour"))
    parser.add_argument("--no-pictures", action="store_true")
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True)
    data = given.data if given.data == "digits" else str(Path(given.data).resolve())
    files = data
    if data == "digits":
        export = "import numpy as np, crosstail; np.save('new.npy', crosstail.load('digits').x[:20])"
        subprocess.run([sys.executable, "-c", export], cwd=out, check=True)
        files = "new.npy"
    lines = (PRACTITIONER + RESEARCHER).format(data=shlex.quote(data), files=shlex.quote(files)).split("\n")
    program = str(Path(sys.executable).with_name("crosstail"))
    commands = [[program, *shlex.split(line)] for line in lines if line]
    commands += [[sys.executable, str(EXAMPLES / name)] for name in LOOP]
    failed = sum(not play(words, out, number) for number, words in enumerate(commands, start=1))
    if not given.no_pictures and shutil.which("chromium"):
        (out / "pictures").mkdir()
        for page in sorted(out.rglob("*.html")):
            if "runs" not in page.parts:
                picture(page, out)
    sys.exit(f"{failed} of {len(commands)} commands failed: see {out}" if failed else 0)


if __name__ == "__main__":
    main()
