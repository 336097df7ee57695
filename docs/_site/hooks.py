"""What mkdocs does beyond Markdown: formulas as MathML, and links to files that are not in docs/."""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
SOURCE = "source/"  # where files are shown that are not in docs/
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"
LISTING = '<details class="mkdocstrings-source"'  # the code of a function, folded
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
SHIM = re.compile(r'<script src="https://[^"]*iframe-worker/shim"></script>')  # the theme's, from elsewhere
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add pages from the root, and one with the text of every file, or list of every folder, that a page links to."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    links = {
        _in_site(page.src_uri, link)
        for page in files.documentation_pages()
        for link in LINK.findall(page.content_string)
    }
    for name in sorted(links):
        file = ROOT / name.removeprefix(SOURCE).removesuffix(".md")
        if name.startswith(SOURCE) and file.exists():
            shown = (
                "\n".join(sorted(path.name for path in file.iterdir())) if file.is_dir() else file.read_text("utf-8")
            )
            text = f"{UNSEARCHED}# {file.name}\n\n````{'text' if file.is_dir() else 'python'}\n{shown.rstrip()}\n````\n"
            files.append(File.generated(config, name, content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at those pages."""
    name = page.file.src_uri
    if name.startswith(SOURCE):
        return markdown
    here = posixpath.dirname(name) or "."
    return LINK.sub(lambda found: "](" + posixpath.relpath(_in_site(name, found[1]), here), markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Turn formulas into MathML, which browsers draw by themselves, and keep listings out of the search."""

    def mathml(found: re.Match[str]) -> str:
        text = html.unescape(found[2]).replace("'", "′")  # a prime of its own would be raised twice
        for size, sides in (("left", "(["), ("right", ")]")):  # brackets grow by themselves
            text = re.sub(rf"\\[bB]ig([{re.escape(sides)}])", rf"\\{size}\1", text)
        return convert(text, display="inline" if found[1] == "span" else "block")

    return FORMULA.sub(mathml, content).replace(LISTING, f"{LISTING} data-search-exclude")


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Let the search of a page that is opened from disk use a script of our own, in place of one on the internet."""
    own = posixpath.relpath("_assets/search-from-disk.js", posixpath.dirname(page.url) or ".")
    return SHIM.sub(f'<script src="{own}"></script>', output)


def on_post_template(output: str, **_: Any) -> str:
    """The page for what is not found is not opened from disk, and needs none."""
    return SHIM.sub("", output)


def _in_site(page: str, link: str) -> str:
    """Which page or file of the site a link of a page leads to, given where both are in the repository."""
    folder = "" if page in PAGES else posixpath.dirname(f"docs/{page}")
    path = posixpath.normpath(posixpath.join(folder, link))
    if path in PAGES:
        return path
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{SOURCE}{path}.md"
