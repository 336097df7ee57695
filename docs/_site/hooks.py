"""What mkdocs does beyond Markdown: formulas as MathML, links to files that are not in docs/, and a nav with *."""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
SHIM = re.compile(r'<script src="https://[^"]*iframe-worker/shim"></script>')  # the theme's, from elsewhere
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """Replace each * of the nav by the pages of its folder that are not named elsewhere."""
    docs = Path(config.docs_dir)
    named = set(re.findall(r"[\w/-]+\.md", str(config.nav)))

    def expanded(item: Any) -> list[Any]:
        if isinstance(item, dict):
            return [{title: expanded_list(inner) for title, inner in item.items()}]
        if "*" not in item:
            return [item]
        return sorted({path.relative_to(docs).as_posix() for path in docs.glob(item)} - named)

    def expanded_list(item: Any) -> Any:
        return [page for inner in item for page in expanded(inner)] if isinstance(item, list) else item

    config.nav = expanded_list(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages from the root, and a page with the text of every file that some page links to."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    for page in list(files.documentation_pages()):
        for path in filter(None, (_outside(page.src_uri, link) for link in LINK.findall(page.content_string))):
            if path not in PAGES and files.get_file_from_path(_source(path)) is None:
                text = (ROOT / path).read_text(encoding="utf-8")
                body = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n```python\n{text}```\n"
                files.append(File.generated(config, _source(path), content=body, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links out of docs/ at those pages."""

    def inside(found: re.Match[str]) -> str:
        path = _outside(page.file.src_uri, found[1])
        if path is None:
            return found[0]
        target = path if path in PAGES else _source(path)
        return "](" + posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(inside, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Turn formulas into MathML, which browsers draw by themselves."""

    def mathml(found: re.Match[str]) -> str:
        return convert(html.unescape(found[2]), display="inline" if found[1] == "span" else "block")

    return FORMULA.sub(mathml, content)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Let the search of a page that is opened from disk use a script of our own, in place of one on the internet."""
    own = posixpath.relpath("_assets/search-from-disk.js", posixpath.dirname(page.url) or ".")
    return SHIM.sub(f'<script src="{own}"></script>', output)


def on_post_template(output: str, **_: Any) -> str:
    """The page for what is not found is not opened from disk, and needs none."""
    return SHIM.sub("", output)


def _outside(page: str, link: str) -> str | None:
    """The path from the root of a linked file that is not in docs/; a page of the root is as if it were in there."""
    at = "" if page in PAGES else posixpath.dirname(f"docs/{page}")
    path = posixpath.normpath(posixpath.join(at, link))
    if page in PAGES and path.startswith("docs/"):
        return None
    return None if path.startswith("docs/") or not (ROOT / path).is_file() else path


def _source(path: str) -> str:
    return f"source/{path}.md"
