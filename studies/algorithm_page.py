"""Write the tables of algorithms.md and second-stages.md in docs/: `python -m studies.algorithm_page`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosstail import algorithms, second_stages
from crosstail.algorithms._catalogue import preset_entries
from crosstail.training.spec import split_method

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- written by studies/algorithm_page.py -->\n", "<!-- end -->\n"


def algorithm_tables() -> str:
    """One table per family."""
    entries = [each for first in algorithms.catalogue() for each in (first, *preset_entries(first))]
    common = next(entry.hyperparameters for entry in entries if entry.name == "erm")
    lines = ["", "All have " + "; ".join(map(_described, common)) + "."]
    times = Counter(each for entry in entries if "@" not in entry.name for each in entry.differs)
    marks = {each: f"({number})" for number, each in enumerate((e for e in times if times[e] > 3), start=1)}
    lines += ["", "In the last column: " + "; ".join(f"{mark} {each}" for each, mark in marks.items()) + "."]
    family, seen = "", dict[str, set[str]]()
    for entry in entries:
        if entry.family != family:
            family = entry.family
            lines += ["", f"### {family[0].upper()}{family[1:]}", ""]
            lines += ["| name | what | cost | hyperparameters | differs from the paper or from public code |"]
            lines += ["|---|---|---|---|---|"]
        hparams = ", ".join(_default(h) for h in entry.hyperparameters if h not in common)
        paper = entry.what if "@" in entry.name else f"{entry.what} ({entry.paper}, {entry.year})"
        differs = [marks.get(each, each) for each in _beyond(entry.differs, seen)]
        lines.append(_row([f"`{entry.name}`", paper, f"{entry.passes:g}", hparams or "–", "; ".join(differs) or "–"]))
        seen[entry.name] = set(entry.differs)
    return "\n".join([*lines, "", ""])


def unshared() -> str:
    """The algorithms that one process has to train alone, by reason."""
    reasons: dict[str, list[str]] = {}
    for entry in algorithms.catalogue():
        if reason := algorithms.find(entry.name).unshared:
            reasons.setdefault(reason, []).append(f"`{entry.name}`")
    items = [f"- {', '.join(names)}: {reason}." for reason, names in reasons.items()]
    lead = "`--devices` shares each batch between processes with the result of one process, except for:"
    return "\n".join(["### Several processes", "", lead, "", *items, "", ""])


def second_stage_table() -> str:
    """One row per second stage."""
    lines = ["", "| name | what | kind | differs from the paper |", "|---|---|---|---|"]
    for entry in second_stages.catalogue():
        paper = f"{entry.what} ({entry.paper}, {entry.year})"
        lines.append(_row([f"`{entry.name}`", paper, entry.kind, "; ".join(entry.differs) or "–"]))
    return "\n".join([*lines, "", ""])


PEERS = {
    "DomainBed": {
        **{"ERM": "erm", "Fish": "fish", "IRM": "irm", "GroupDRO": "group_dro", "Mixup": "mixup", "MLDG": "mldg"},
        **{"CORAL": "coral", "MMD": "mmd", "DANN": "dann", "CDANN": "cdann", "MTL": "mtl", "SagNet": "sagnet"},
        **{"VREx": "vrex", "RSC": "rsc", "SD": "sd", "ANDMask": "and_mask", "SANDMask": "sand_mask", "IGA": "iga"},
        **{"SelfReg": "selfreg", "Fishr": "fishr", "IB_ERM": "ib_erm", "IB_IRM": "ib_irm", "CAD": "cad"},
        **{"CondCAD": "cond_cad", "Transfer": "transfer", "CausIRL_CORAL": "causirl_coral"},
        **{"CausIRL_MMD": "causirl_mmd", "EQRM": "eqrm", "RDM": "rdm", "URM": "urm", "ARM": "arm"},
        **{"TRM": "trm", "ADRMX": "adrmx", "ERMPlusPlus": "erm_plus_plus"},
    },
    "SubpopBench": {
        **{"ERM": "erm", "GroupDRO": "group_dro", "IRM": "irm", "CVaRDRO": "cvar_dro", "JTT": "jtt", "LfF": "lff"},
        **{"LISA": "lisa", "DFR": "erm:dfr", "Mixup": "mixup", "MMD": "mmd", "CORAL": "coral"},
        **{"ReSample": "resample", "ReWeight": "reweight", "SqrtReWeight": "sqrt_reweight", "CBLoss": "cb_loss"},
        **{"Focal": "focal", "LDAM": "ldam", "BSoftmax": "bsoftmax", "CRT": "crt"},
        **{"ReWeightCRT": "erm:reweight", "VanillaCRT": "erm:plain"},
    },
    "the BoDA code": {
        **{"ERM": "erm", "GroupDRO": "group_dro", "Mixup": "mixup", "SagNet": "sagnet", "MLDG": "mldg", "IRM": "irm"},
        **{"DANN": "dann", "CDANN": "cdann", "CORAL": "coral", "MMD": "mmd", "MTL": "mtl", "Fish": "fish"},
        **{"ReSamp": "resample", "ReWeight": "reweight", "SqrtReWeight": "sqrt_reweight", "Focal": "focal"},
        **{"CBLoss": "cb_loss", "LDAM": "ldam", "BSoftmax": "bsoftmax", "CRT": "crt"},
        "BoDA": "boda@reference",
    },
}
"""The algorithms of other libraries: the method here, or the reason why there is none."""


def peer_table() -> str:
    """One row per library: how many of its algorithms are here, and why the others are not."""
    lines = ["", "| library | here | under another name | not here |", "|---|---|---|---|"]
    for library, known in PEERS.items():
        here = {name: ours for name, ours in known.items() if " " not in ours}
        for method in here.values():
            algorithm, stage = split_method(method)
            algorithms.find(algorithm)
            assert not stage or stage in {entry.name for entry in second_stages.catalogue()}
        renamed = [f"{n}: `{m}`" for n, m in here.items() if n.replace("_", "").lower() != m.replace("_", "")]
        missing = "; ".join(f"{name}: {reason}" for name, reason in known.items() if name not in here)
        lines.append(_row([library, f"{len(here)} of {len(known)}", ", ".join(renamed) or "–", missing or "–"]))
    return "\n".join([*lines, "", ""])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _beyond(differs: Sequence[str], seen: dict[str, set[str]]) -> list[str]:
    """What an algorithm does differently, beside all that an earlier one does too if that is long."""
    shared = {name: "".join(those) for name, those in seen.items() if those <= set(differs)}
    longest = max(shared, key=lambda name: len(shared[name]), default="")
    if not longest or len(shared[longest]) < 40:
        return [*differs]
    return [f"as `{longest}`", *(each for each in differs if each not in seen[longest])]


def _default(hparam: dict[str, Any]) -> str:
    default = hparam["default"]
    return f"`{hparam['name']}` {default:{'g' if isinstance(default, float) else ''}}"


def _described(hparam: dict[str, Any]) -> str:
    return f"{_default(hparam)}: {hparam['meaning']}" + (f" ({hparam['search']})" if hparam["search"] else "")


PAGES = {
    DOCS / "algorithms.md": lambda: algorithm_tables() + unshared() + "### Other libraries\n" + peer_table(),
    DOCS / "second-stages.md": second_stage_table,
}


def page(path: Path) -> str:
    """A page with new tables between its two markers."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    return before + BEGIN + PAGES[path]() + END + rest.split(END)[1]


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path), encoding="utf-8")
