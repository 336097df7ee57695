"""Data sheets of benchmarks, and what a check of a folder found, as documents."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from crosstail.data import protocols
from crosstail.data.benchmarks._check_result import CheckResult
from crosstail.data.benchmarks._sheet import Archive, DataSheet
from crosstail.reports.document.model import Block, Code, Document, Heading, Item, Items, Table, Text
from crosstail.reports.wording import several

LISTED = 12  # classes


def sheet_document(sheet: DataSheet, root: Path | None, name: str) -> Document:
    """The whole data sheet, and the commands to get and use the data."""
    facts = [[name, text] for name, text in _facts(sheet) if text]
    blocks: list[Block] = [Text(sheet.summary), Table(header=["", ""], rows=facts, words_last=True)]
    blocks += [Text(" ".join(paragraph.split())) for paragraph in sheet.about.split("\n\n") if paragraph]
    if sheet.archives:
        blocks += [*_files(sheet.archives), *_instructions(sheet, name, str(root) if root else "FOLDER")]
    else:
        blocks += [Heading("Use it"), Code(f"crosstail fit {name} --out run")]
    return Document(sheet.title, blocks)


def check_blocks(report: CheckResult, quick: bool) -> list[Block]:
    """What a check found, and the verdict last."""
    found = [(finding, True) for finding in report.problems] + [(finding, False) for finding in report.notes]
    items = [Item(finding.message, "\n".join(finding.paths), problem) for finding, problem in found]
    scope = "names and counts compared" if quick else "all images read"
    verdict = "ok" if report.ok else several(len(report.problems), "problem")
    return [Items(items), Text(f"{report.name} in {report.root}: {report.images:,} images, {scope}: {verdict}")]


def _facts(sheet: DataSheet) -> Iterator[tuple[str, str]]:
    sizes = [f" ({n:,})" for n in sheet.domain_counts] or [""] * len(sheet.domains)
    yield "made by", sheet.made_by
    yield "licence", sheet.licence
    yield "citation", sheet.citation
    yield "from", sheet.source
    yield "domains", ", ".join(name + size for name, size in zip(sheet.domains, sizes, strict=True))
    listed = sheet.classes if len(sheet.classes) <= LISTED else (*sheet.classes[:5], "…", sheet.classes[-1])
    yield "classes", f"{len(sheet.classes)}: {', '.join(listed)}"
    yield "images", f"{sheet.images:,}" if sheet.images else ""
    if sheet.validation:
        kept = f"per pair {sheet.validation} for validation and {2 * sheet.validation} for test, the rest for training"
        totals = " / ".join(f"{n:,}" for n in sheet.paper_totals or ())
        yield "split", f"{kept}; in the paper {totals} for training / validation / test"
    yield "labels", ", ".join(sheet.labels)
    yield "training", f"{sheet.steps:,} steps of {sheet.batch_size} images per domain"
    yield "shots", f"many: over {sheet.many} training images of a pair, few: up to {sheet.few}"
    yield "protocols", ", ".join(f"{name} ({protocols.summary(name)})" for name in sheet.protocols)
    yield "clean-up", sheet.clean_up
    yield "releases", "; ".join(f"also in circulation: {release.what}" for release in sheet.releases)


def _files(archives: Sequence[Archive]) -> Iterator[Block]:
    yield Heading("Files")
    for archive in archives:
        size = "size unknown" if archive.size is None else f"{archive.size:,} bytes"
        checksum = " ".join(archive.checksum) if archive.checksum else "checksum unknown"
        optional = ", optional" if archive.optional else ""
        yield Items([Item(f"{archive.file}, {size}{optional}", f"{checksum}\ncontains {archive.unpacks_to}")])
        yield Code("\n".join(archive.mirrors))


def _instructions(sheet: DataSheet, name: str, folder: str) -> Iterator[Block]:
    yield Heading("Download and unpack")
    yield Code(f"crosstail data {name} --root {folder} --download")
    yield Text("Or put the files into the folder under these names and run the same command to verify and unpack them.")
    if sheet.validation:
        yield Text("Images that are already in folders like these are used as they are:")
        yield Code("\n".join(f"{folder}/{domain}/{sheet.classes[0]}/*" for domain in sheet.domains))
        if sheet.split_file:
            yield Text(
                f"If the folder has the paper's split file, {sheet.split_file}, it is used; otherwise a new split with "
                "the same numbers per pair is drawn."
            )
    yield Heading("Check and train")
    yield Code(f"crosstail data {name} --root {folder} --check\ncrosstail fit {name}:{folder} --out run")
