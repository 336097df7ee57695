"""A practitioner with a messy folder: are the promises of a run kept? docs/results/practitioner.md.

From a folder of photos, some of each pair are held back, and the rest becomes a folder as they come: long tails that
differ between domains, two empty pairs, a class folder with a space at its end, copies that were resized or encoded
again, photos turned by their EXIF tag, wrong labels, broken files, and files that are no photos. What the audit finds,
and what the page of the run promises, is compared with what was planted and with the photos held back. Then come new
photos without labels: `predict` writes a page, somebody looks in a browser at those that need a look and corrects them,
and a model that is trained with these labels is tested on the photos held back. On synthetic digits, or on a folder
ROOT/<domain>/<class>/<image>:

    python -m studies.practitioner --out runs/practitioner
    python -m studies.practitioner --out runs/practitioner --data ../shared/data/office-caltech10 --page
"""

import csv
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageOps
from selenium.webdriver.common.keys import Keys
from studies.paper_claims.page import table
from studies.result_options import result_options
from tests.browser import soon, started

import crosstail
from crosstail import RunSpec
from crosstail.data import DataSpec
from crosstail.metrics import PairAccuracy, wilson
from crosstail.reports.run.certainty_data import Certainty
from crosstail.reports.run.suspects import suspect_table

PAGE = Path(__file__).parents[1] / "docs/results/practitioner.md"
HELD = 10  # photos of each pair at most that are held back, half of them where there are fewer
MOST, LEAST = 60, 3  # photos of the most frequent and the rarest class of a domain
COPIES, FLIPS, TURNED, BROKEN = 10, 6, 6, 4
FREQUENT = 12  # photos of a pair, from which labels are mistaken
NEW = 12  # photos of each pair at most that come without labels
RECALL = 0.8  # of the class that must not be missed
COVERAGE = 0.9
TURN = 6  # the EXIF orientation of a photo taken with the camera upright
NAMES = ("Fotos Zürich", "camera B (loan)")  # of the first domains


@dataclass
class Mess:
    """Two folders, and what was planted in the first."""

    folder: Path
    held: Path
    new: Path
    truth: dict[str, str] = field(default_factory=dict)  # the class of each new photo
    spaced: str = ""  # the class with a space at its end
    copies: list[tuple[Path, Path]] = field(default_factory=list)
    flipped: list[Path] = field(default_factory=list)
    broken: list[Path] = field(default_factory=list)
    photos: int = 0  # without the broken ones


def digits(out: Path) -> Path:
    """Synthetic digits as a folder of photos."""
    data = crosstail.load("digits")
    for row in range(len(data)):
        place = out / data.domains[data.domain[row]] / data.classes[data.y[row]]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(data.x[row])).resize((128, 128)).save(place / f"{row}.jpg", quality=95)
    return out


def make(source: Path, out: Path, seed: int) -> Mess:
    """Divide a folder, and plant the mess."""
    rng, mess = np.random.default_rng(seed), Mess(out / "my photos", out / "held back", out / "new photos")
    domains = sorted(place.name for place in source.iterdir() if place.is_dir())
    names = dict(zip(domains, [*NAMES, *domains[len(NAMES) :]], strict=False))
    classes = sorted({place.name for domain in domains for place in (source / domain).iterdir() if place.is_dir()})
    empty = {(domains[0], classes[0]), (domains[-1], classes[-1])}
    kept: dict[tuple[str, str], list[Path]] = {}
    for d, domain in enumerate(domains):
        sizes = np.geomspace(MOST, LEAST, len(classes)).round().astype(int)
        order = rng.permutation(len(classes)) if d % 2 else np.arange(len(classes))[:: 1 - 2 * (d % 4 // 2)]
        for label, size in zip((classes[c] for c in order), sizes, strict=True):
            photos = [file for file in sorted((source / domain / label).glob("*")) if file.is_file()]
            photos = [photos[i] for i in rng.permutation(len(photos))]
            back = min(HELD, len(photos) // 2)
            _copy(photos[:back], mess.held / names[domain] / label)
            for photo in photos[back:][size:][:NEW]:
                place = mess.new / names[domain] / f"{len(mess.truth):04}{photo.suffix}"
                place.parent.mkdir(parents=True, exist_ok=True)
                mess.truth[str(Path(shutil.copy(photo, place)).resolve())] = label
            if (domain, label) not in empty:
                kept[names[domain], label] = _copy(photos[back:][:size], mess.folder / names[domain] / label)
    every = [photo for photos in kept.values() for photo in photos]
    chosen = iter(rng.permutation(len(every)))
    for k in range(COPIES):
        photo = every[next(chosen)]
        image = Image.open(photo).convert("RGB")
        if k % 2:
            image = image.resize(
                (max(1, image.width * 3 // 5), max(1, image.height * 3 // 5)), Image.Resampling.LANCZOS
            )
        mess.copies.append((photo, _saved(image, photo.with_name(f"{photo.stem}-copy.jpg"), quality=70)))
    frequent = [photo for photos in kept.values() if len(photos) >= FREQUENT for photo in photos]
    taken = {photo for photo, _ in mess.copies}
    for photo in rng.permutation([photo for photo in frequent if photo not in taken])[:FLIPS]:
        labels = [c for (d, c), photos in kept.items() if d == photo.parents[1].name and len(photos) >= FREQUENT]
        place = photo.parents[1] / rng.choice([label for label in labels if label != photo.parent.name])
        mess.flipped.append(photo.rename(place / f"{photo.stem}-{photo.parent.name}{photo.suffix}"))
        every.remove(photo)
    chosen = iter(rng.permutation(len(every)))
    for _ in range(TURNED):  # looks as before
        photo = every[next(chosen)]
        exif = Image.Exif()
        exif[0x0112] = TURN
        _saved(ImageOps.exif_transpose(Image.open(photo)).convert("RGB").rotate(90, expand=True), photo, exif=exif)
    for _ in range(BROKEN):
        photo = every[next(chosen)]
        photo.write_bytes(photo.read_bytes()[: photo.stat().st_size // 3])
        mess.broken.append(photo)
    (domain, label), photos = max(kept.items(), key=lambda item: len(item[1]))
    mess.spaced, spaced = label, mess.folder / domain / f"{label} "
    spaced.mkdir()
    for photo in sorted((mess.folder / domain / label).iterdir())[::2]:
        moved = photo.rename(spaced / photo.name)
        mess.copies = [tuple(moved if one == photo else one for one in pair) for pair in mess.copies]
        mess.flipped = [moved if one == photo else one for one in mess.flipped]
        mess.broken = [moved if one == photo else one for one in mess.broken]
    (mess.folder / domain / ".DS_Store").write_bytes(b"\\0")
    (mess.folder / "notes.txt").write_text("to sort")
    mess.photos = sum(file.suffix != ".txt" and file.name[0] != "." for file in mess.folder.rglob("*.*")) - BROKEN
    return mess


def _copy(photos: Sequence[Path], place: Path) -> list[Path]:
    place.mkdir(parents=True)
    return [Path(shutil.copy(photo, place / photo.name)) for photo in photos]


def _saved(image: Image.Image, path: Path, **how: object) -> Path:
    image.save(path, "JPEG", **how)
    return path


@dataclass(frozen=True)
class Promise:
    """What was said of a run, what is true, and whether that is within what was said."""

    said: str
    true: str
    kept: bool


def check(mess: Mess, out: Path) -> dict[str, Promise]:
    """Audit, train, and compare with the photos held back."""
    found: dict[str, Promise] = {}
    spec = RunSpec(dataset=str(mess.folder), names="merge", skip_broken=True)
    audit = crosstail.audit(DataSpec(dataset=str(mess.folder), skip_broken=True)).found
    spellings = [name.spellings for name in audit.same_names]
    found["spellings of a class are a problem"] = Promise("1", str(len(spellings)), len(spellings) == 1)
    try:
        crosstail.fit(RunSpec(dataset=str(mess.folder), skip_broken=True), out / "refused")
        refused = "trained"
    except ValueError as error:
        refused = "refused" if "--names" in str(error) else str(error)
    found["training on them without a decision"] = Promise("refused", refused, refused == "refused")
    found["photos that can be read"] = _count(audit.num_samples, mess.photos)
    alike = [{sample.name for sample in one.samples} for one in audit.duplicates]
    pairs = [{str(photo.relative_to(mess.folder)) for photo in pair} for pair in mess.copies]
    copies = sum(any(pair <= group for group in alike) for pair in pairs)
    found["copies found"] = Promise(f"≥ {0.95:.0%}", f"{copies} of {len(pairs)}", copies >= 0.9 * len(pairs))

    number = Counter(photo.parent.name for photo in mess.folder.glob("*/*/*"))
    critical = max(number, key=lambda name: number[name])
    fitted = crosstail.fit(spec, out / "run", critical=[f"{critical}={RECALL}"])
    run, test = fitted.run, fitted.run.test
    assert test is not None
    result = crosstail.evaluate(out / "run", DataSpec(dataset=str(mess.held)))
    answers = result.found.answers
    assert (list(test.domains), list(test.classes)) == (list(answers.domains), list(answers.classes))
    promised = PairAccuracy.of(test)
    found["pair average, %"] = _same(promised, PairAccuracy.of(answers).only(promised.totals > 0))
    about, sets = Certainty.of(run), result.found.sets
    assert about is not None and about.sets is not None and sets is not None
    said, true = about.sets, sets
    covered = over_pairs(true, true["inside"]).weighted(run.result.counts)  # as they come: rare pairs share thresholds
    found["sets with the true class, %"] = Promise(
        f"≥ {_percent(COVERAGE)}", _percent(covered.pair_average), (covered.interval() or (0, 1))[1] >= COVERAGE
    )
    found["to review, %"] = _same(*(over_pairs(part, part["size"] != 1) for part in (said, true)))
    alone = [part[part["size"] == 1] for part in (said, true)]
    found["right without review, %"] = _same(*(over_pairs(part, part["inside"]) for part in alone))
    assert result.found.alarms is not None
    of_class = answers.y == list(answers.classes).index(critical)
    flagged = result.found.alarms[1][of_class, 0]
    found["flagged of the class that must not be missed, %"] = Promise(
        f"≥ {_percent(RECALL)}", _percent(flagged.mean()), wilson(flagged.sum(), len(flagged))[1] >= RECALL
    )
    suspects = suspect_table(run)
    planted = {str(photo.relative_to(mess.folder)) for photo in mess.flipped}
    hit, listed = sum(sample in planted for sample in suspects["sample"]), len(suspects)
    share = float(suspects["chance"].mean()) if listed else 0.0
    found["label errors listed that were planted"] = Promise(
        f"{_percent(share)} % of {listed}" if listed else "none listed",
        str(hit),
        not hit or wilson(hit, listed)[1] >= share,
    )
    if mess.truth:
        promised = over_pairs(alone[0], alone[0]["inside"]).interval("pair_average") or (0.0, 1.0)
        found |= _reviewed(mess, out, spec, PairAccuracy.of(answers), promised)
    return found


def _reviewed(
    mess: Mess, out: Path, spec: RunSpec, before: PairAccuracy, promised: tuple[float, float]
) -> dict[str, Promise]:
    """Predict new photos, look at those that need it, and train again with their labels."""
    crosstail.predict(out / "run", [mess.new], site="folder", coverage=COVERAGE, out=out / "answers.csv", page=True)
    with (out / "answers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    look = {str(Path(row["input"]).resolve()) for row in rows if row["review"] == "yes"}
    rest = [row["class"] == mess.truth[str(Path(row["input"]).resolve())] for row in rows if row["review"] == "no"]
    with look_at(out / "answers.html", mess.truth, out).open(encoding="utf-8") as file:
        labels = {row["path"]: row for row in csv.DictReader(file)}
    wrong = sum(mess.truth[path] != row["label"] for path, row in labels.items())
    for path, row in labels.items():
        place = mess.folder / row["domain"] / row["label"]
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / f"looked-at-{Path(path).name}")
    crosstail.fit(spec, out / "again")
    after = PairAccuracy.of(crosstail.evaluate(out / "again", DataSpec(dataset=str(mess.held))).found.answers)
    low, high = wilson(sum(rest), len(rest))
    values = before.pair_average or 0.0, after.pair_average or 0.0
    return {
        "new photos that need a look, saved with their true label": Promise(
            str(len(look)), str(len(labels) - wrong), set(labels) == look and not wrong
        ),
        "right of the new photos that need none, %": Promise(
            " to ".join(map(_percent, promised)),
            f"{_percent(float(np.mean(rest)) if rest else None)} of {len(rest)}",
            low <= promised[1] and promised[0] <= high,
        ),
        "pair average on photos held back, before → with the new labels, %": Promise(
            _percent(values[0]), _percent(values[1]), values[1] >= values[0]
        ),
    }


def look_at(page: Path, truth: dict[str, str], out: Path) -> Path:
    """Go through the photos that need a look with the keyboard, in a browser, and save the labels."""
    with started() as browser:
        browser.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(out.resolve())}
        )
        browser.get(page.resolve().as_uri())
        browser.find_element("id", "flag").send_keys("needs a look")
        todo = "return shown.map(i => [photos[i].path, photos[i].classes.map(c => classes[c])])"
        browser.execute_script("document.querySelector('.tile')?.focus()")
        for path, listed in browser.execute_script(todo):
            true = truth[str(Path(path).resolve())]
            keys = Keys.ENTER if true == listed[0] else str(listed.index(true) + 1) if true in listed else "o"
            browser.switch_to.active_element.send_keys(keys)
            if keys == "o":
                browser.switch_to.active_element.send_keys(true, Keys.TAB)
                browser.execute_script("focus(1, document.activeElement.closest('.tile'))")
        browser.find_element("id", "save").click()
        return Path(soon(lambda: [file for file in out.glob("*-labels.csv") if file.stat().st_size])[0])


def over_pairs(table: pd.DataFrame, hit: "pd.Series[bool]") -> PairAccuracy:
    """How often something is so, by pair."""
    shape = table["domain"].max() + 1, table["class"].max() + 1
    hits, totals = np.zeros((2, *shape), np.int64)
    np.add.at(totals, (table["domain"], table["class"]), 1)
    np.add.at(hits, (table["domain"], table["class"]), hit.astype(int))
    return PairAccuracy(hits, totals)


def _same(said: PairAccuracy, true: PairAccuracy) -> Promise:
    """Means over pairs, which are the same if their intervals have something in common."""
    first, second = (part.interval("pair_average") or (0.0, 1.0) for part in (said, true))
    shown = (
        f"{_percent(part.pair_average)} ({_percent(low)} to {_percent(high)})"
        for part, (low, high) in ((said, first), (true, second))
    )
    return Promise(*shown, kept=first[0] <= second[1] and second[0] <= first[1])


def _count(said: int, true: int) -> Promise:
    return Promise(str(said), str(true), said == true)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def page(name: str, found: Sequence[dict[str, Promise]]) -> Iterator[str]:
    """What was said and what is true, for each seed."""
    yield "# A practitioner's messy folder"
    yield ""
    yield f"{name}: from each of {len(found)} messy folders that `python -m studies.practitioner` makes, what"
    yield "the audit and the page of a run with all defaults say, and what is true of the photos that it never"
    yield "saw."
    yield ""
    kept = [[what, f"{sum(one[what].kept for one in found)} of {len(found)}"] for what in found[0]]
    values = [[f"{one[what].said} → {one[what].true}" for one in found] for what in found[0]]
    header = ["said → true", "kept", *(f"folder {k}" for k in range(1, len(found) + 1))]
    yield from table(header, [own + cells for own, cells in zip(kept, values, strict=True)])
    yield "A promise counts as kept if the two intervals overlap, coverage if its interval reaches 90 %: of samples as"
    yield "they come, since pairs with few samples share thresholds. Where no label error is listed, nothing was"
    yield "promised; six are planted in each folder. They are among frequent pairs since a first version, with"
    yield "twelve anywhere, made accuracy on wrong labels (86.7 %) miss the true one (96.8 %): wrong labels in rare"
    yield "pairs make a page too pessimistic. The recall of a critical class (the most frequent one) is kept if its"
    yield "interval reaches 80 %. New photos are looked at in Chromium, with the keyboard: those that `predict` marks."


def main() -> None:
    """Make the folders, check the promises, and write the page if asked to."""
    parser = result_options(__doc__, "runs/practitioner", data="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", action="store_true", help="write docs/results/practitioner.md")
    given = parser.parse_args()
    given.out.mkdir(parents=True)
    source = given.data.resolve() if str(given.data) != "." else digits(given.out / "digits")
    found = []
    for seed in range(given.seeds):
        out = given.out / str(seed)
        found.append(check(make(source, out, seed), out))
    lines = "\n".join([*page(source.name, found), ""])
    print(lines)
    if given.page:
        PAGE.write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
