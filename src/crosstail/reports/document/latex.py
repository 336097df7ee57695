"""Tables as LaTeX, to include in a paper; the preamble needs booktabs and graphicx."""

import re

from crosstail.reports.document.model import Table

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--"}
_SPECIAL |= {sign: rf"\{sign}" for sign in "&%$#_{}"}
_SPECIAL |= {"α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ν": r"$\nu$", "−": "$-$", "•": r"$\bullet$"}
_SPECIAL |= {"×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "…": r"\dots{}", "†": r"$^\dagger$"}
_SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}"}
_MINUS = re.compile(r"^-(?=\d)")
_SCALED = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox{0}}\else\usebox{0}\fi"
LONG = 60  # letters beyond which a cell has several lines


def table(block: Table) -> str:
    """A tabular with booktabs' rules, emphasised cells in bold; long texts are wrapped, wide tables scaled."""
    lines = [[_MINUS.sub("$-$", escape(cell)) for cell in row] for row in (block.header, *block.rows)]
    for i, j in block.emphasised:
        lines[i + 1][j] = rf"\textbf{{{lines[i + 1][j]}}}"
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    kinds = ["l" if words else "r" for words in block.words]
    for j in range(len(kinds)):
        if max((len(row[j]) for row in block.rows), default=0) > LONG:
            kinds[j] = r"p{0.5\linewidth}"
    rows = [r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    made = [rf"\begin{{tabular}}{{{''.join(kinds)}}}", *rows, r"\end{tabular}"]
    return "\n".join([r"{\sbox{0}{%", *made, "}%", rf"{_SCALED}}}"])


def floating(block: Table) -> str:
    """A float of one column's width: small type, narrow gaps, the title as its caption, the name as its label."""
    body = rf"\setlength{{\tabcolsep}}{{3pt}}{chr(10)}{table(block)}"
    lines = [r"\begin{table}[t]", r"\centering\small", rf"\caption{{{escape(block.title)}}}"]
    return "\n".join([*lines, rf"\label{{tab:{block.name}}}", r"\smallskip", body, r"\end{table}"])


def escape(text: str) -> str:
    """Escape everything that LaTeX would interpret."""
    return "".join(_SPECIAL.get(sign, sign) for sign in text)
