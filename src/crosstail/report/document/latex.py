"""Documents as LaTeX, to include in a paper; the preamble needs booktabs and graphicx."""

from collections.abc import Iterator

from crosstail.report.document.model import Block, Chart, Code, Document, Gallery, Heading, Items, Table, Text

_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--"}
_SPECIAL |= {sign: rf"\{sign}" for sign in "&%$#_{}"}
_SPECIAL |= {"α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ν": r"$\nu$", "−": "$-$", "•": r"$\bullet$"}
_SPECIAL |= {
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "…": r"\dots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def render(document: Document) -> str:
    """The whole document as one section; charts are included from charts/NAME.pdf."""
    parts = [rf"\section{{{escape(document.title)}}}"]
    for block in document.blocks:
        parts += filter(None, _block(block))
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield rf"\subsection{{{escape(text)}}}"
        case Text(text):
            yield escape(text)
        case Code(text):
            yield rf"\begin{{quote}}\ttfamily {escape(text)}\end{{quote}}"
        case Items(items):
            lines = [rf"\item {escape(f'{item.text} {item.detail}'.strip())}" for item in items]
            yield "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])
        case Table():
            yield _float("table", table(block), block.title, block.note)
        case Chart():
            picture = rf"\includegraphics[width=\linewidth]{{charts/{block.name}}}"
            yield _float("figure", picture, block.title, block.note)
        case Gallery(caption, pictures):
            yield escape(f"{caption}: " + "; ".join(picture.alternative for picture in pictures))


def _float(kind: str, body: str, title: str, note: str) -> str:
    caption = escape(". ".join(filter(None, (title, note))))
    return "\n".join([rf"\begin{{{kind}}}", body, rf"\caption{{{caption}}}", rf"\end{{{kind}}}"])


def table(block: Table) -> str:
    """A tabular with booktabs' rules, emphasised cells in bold."""
    lines = [[escape(cell) for cell in block.header]]
    for i, row in enumerate(block.rows):
        cells = [escape(cell) for cell in row]
        lines.append([rf"\textbf{{{cell}}}" if (i, j) in block.emphasised else cell for j, cell in enumerate(cells)])
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    columns = "l" + "r" * (len(block.header) - 1 - block.words_last) + "l" * block.words_last
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    )


def escape(text: str) -> str:
    """Escape everything that LaTeX would interpret.

    >>> escape("a_b & 5 %")
    'a\\\\_b \\\\& 5 \\\\%'
    """
    return "".join(_SPECIAL.get(sign, sign) for sign in text)
