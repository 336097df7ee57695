"""Data sheets and the reports of checks as text of at most 80 columns; only an address may be longer."""

import json
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from crosstail import discovery
from crosstail.data.benchmarks._report import Finding, Report, plural
from crosstail.data.benchmarks._sheet import Archive, DataSheet

WIDTH = 80
INDENT = 12


def show_all(package: str, as_json: bool) -> None:
    """One line or two per benchmark."""
    sheets = [discovery.find(package, name, "benchmark").SHEET for name in discovery.names(package)]
    if as_json:
        keys = ("name", "title", "summary", "images", "licence")
        print(json.dumps([{key: getattr(sheet, key) for key in keys} | _shape(sheet) for sheet in sheets]))
        return
    for sheet in sheets:
        images = f", {sheet.images:,} images" if sheet.images else ""
        size = f"{len(sheet.domains)} domains, {len(sheet.classes)} classes{images}"
        print(f"{sheet.name:<17}{size}")
        _print([_filled(sheet.summary, 17)])
    _print(["", "crosstail data NAME shows what it is and how to get it."])


def show(sheet: DataSheet, root: Path | None) -> None:
    """The whole data sheet, and what to do to have the data."""
    folder = str(root) if root else "FOLDER"
    _print([_filled(sheet.title, 0), "", _filled(sheet.summary, 0), ""])
    _print(_row(key, text) for key, text in _facts(sheet) if text)
    if not sheet.archives:
        _print(["", f"Use it:  crosstail fit {sheet.name} --out run"])
        return
    _print(["", "Files"])
    for archive in sheet.archives:
        _print(_file(archive))
    _print(["", "Fetch and unpack them", f"  crosstail data {sheet.name} --root {folder} --download"])
    by_hand = "or put them into the folder by hand, under these names, and run the same: it verifies and unpacks them."
    _print([_filled(by_hand, 0)])
    if sheet.validation:
        _print([_filled("Or have the images there already, in folders like these:", 0)])
        _print(f"  {folder}/{domain}/{sheet.classes[0]}/*" for domain in sheet.domains)
        if sheet.split_file:
            text = f"The paper's split file, {sheet.split_file}, is used if it is in the folder; otherwise the split "
            _print([_filled(text + "is made anew, with the same numbers per pair.", 0)])
    _print(["Then", f"  crosstail data {sheet.name} --root {folder} --check"])
    _print([f"  crosstail fit {sheet.name}:{folder} --out run"])


def show_report(report: Report, quick: bool) -> None:
    """What a check found, and the verdict last."""
    for word, findings in (("problem", report.problems), ("note", report.notes)):
        for finding in findings:
            _print(_finding(word, finding))
    looked = "names and counts only" if quick else "every image was read"
    verdict = "ok" if report.ok else f"{len(report.problems)} {plural('problem', report.problems)}"
    _print([_filled(f"{report.name} in {report.root}: {report.images:,} images, {looked}: {verdict}", 0)])


def _facts(sheet: DataSheet) -> Iterator[tuple[str, str]]:
    sizes = [f" ({n:,})" for n in sheet.domain_counts] or [""] * len(sheet.domains)
    yield "made by", sheet.made_by
    yield "licence", sheet.licence
    yield "citation", sheet.citation
    yield "from", sheet.source
    yield "domains", ", ".join(name + size for name, size in zip(sheet.domains, sizes, strict=True))
    shown = sheet.classes if len(sheet.classes) <= 12 else (*sheet.classes[:5], "…", sheet.classes[-1])
    yield "classes", f"{len(sheet.classes)}: {', '.join(shown)}"
    yield "images", f"{sheet.images:,}" if sheet.images else ""
    if sheet.validation:
        kept = f"per pair {sheet.validation} for validation and {2 * sheet.validation} for test, the rest for training"
        totals = " / ".join(f"{n:,}" for n in sheet.paper_totals or ())
        yield "split", f"{kept}; in the paper {totals} for training / validation / test"
    yield "labels", ", ".join(sheet.labels)
    yield "training", f"{sheet.steps:,} steps of {sheet.batch_size} images per domain"
    yield "shots", f"many above {sheet.many}, few up to {sheet.few} training images of a pair"
    words = {"mdlt": "mdlt (every pair is tested)", "dg": "dg (a domain is left out of training)"}
    yield "protocols", ", ".join(words[protocol] for protocol in sheet.protocols)
    yield "clean-up", sheet.clean_up
    yield "releases", "; ".join(f"also in circulation: {release.what}" for release in sheet.releases)


def _file(archive: Archive) -> Iterator[str]:
    size = "size unknown" if archive.size is None else f"{archive.size:,} bytes"
    yield f"  {archive.file}, {size}" + (", optional" if archive.optional else "")
    yield f"    {' '.join(archive.checksum)}" if archive.checksum else "    checksum unknown"
    yield from (f"    {mirror}" for mirror in archive.mirrors)
    yield _filled(f"holds {archive.unpacks_to}", 4)


def _finding(word: str, finding: Finding) -> Iterator[str]:
    yield _row(word, finding.message)
    yield from (_filled(path, INDENT + 2) for path in finding.paths)


def _row(key: str, text: str) -> str:
    return f"{key:<{INDENT}}{_filled(text, INDENT).lstrip()}"


def _filled(text: str, indent: int) -> str:
    margin = " " * indent
    return textwrap.fill(
        text, WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def _shape(sheet: DataSheet) -> dict[str, object]:
    return {"domains": list(sheet.domains), "classes": len(sheet.classes), "protocols": list(sheet.protocols)}


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
