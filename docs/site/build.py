"""The documentation site: pages of docs/ by journey, with search. `python -m docs.site.build OUT` (`make docs`).

The pages are Markdown files that read well where they lie. From them this makes sources for Sphinx (long pages split,
links rewritten, terms linked) and runs it; every warning is an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .links import SiteLinks, with_terms
from .page_tree import SitePage, blocks, parse, split
from .reference import GENERATED

DOCS = Path(__file__).parents[1]
SITE = Path(__file__).parent
_COPIED = ("images", "schemas", "examples", "operations")
# Pages about the glossary and long tables, in which links to terms would be noise.
_WITHOUT_TERMS = frozenset({"glossary", "systems", "<commands>", "<recipes>", "<schemas>"})


def sources(out: Path) -> dict[str, SitePage]:
    """Writes the sources of the site to the folder `out`. Returns the first page of each file, by name."""
    journeys = tomllib.loads((SITE / "navigation.toml").read_text())["journey"]
    names = [name for journey in journeys for name in journey["pages"]]
    _require_all(names)
    texts = {name: _text(name) for name in names}
    pages = {_place(name): split(parse(texts[name]), _place(name)) for name in names if name != "glossary"}
    glossary = parse(texts["glossary"])
    pages["glossary"] = SitePage("glossary", glossary.title, texts["glossary"], list(glossary.anchors()))
    for folder in _COPIED:
        shutil.copytree(
            DOCS / folder,
            out / folder,
            ignore=shutil.ignore_patterns("__pycache__", "secrets", ".env", "*.md"),
        )
    shutil.copytree(SITE / "static", out / "static")
    shutil.copy(SITE / "conf.py", out)
    shutil.copy(DOCS.parent / "static/img/icon.svg", out)
    copied = frozenset(str(path.relative_to(out)) for folder in _COPIED for path in (out / folder).rglob("*"))
    others = {"../README.md": "index", "../SECURITY.md": "security"}
    links = SiteLinks(pages, copied, others, lambda path: (DOCS / path).exists())
    terms = _terms(texts["glossary"])
    for name in names:
        for page in pages[_place(name)].walk():
            text = links.rewritten(page, _place(name))
            if name == "glossary":
                text = _as_glossary(text)
            elif name not in _WITHOUT_TERMS:
                text = with_terms(text, terms)
            path = out / f"{page.place}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + _contents(page))
    (out / "index.md").write_text(_index(journeys, pages))
    return pages


def _place(name: str) -> str:
    return name.strip("<>")


def _text(name: str) -> str:
    return GENERATED[_place(name)]() if name.startswith("<") else (DOCS / f"{name}.md").read_text()


def _require_all(names: list[str]) -> None:
    there = {str(path.relative_to(DOCS))[:-3] for path in DOCS.rglob("*.md")} - {"index"}
    named = {name for name in names if not name.startswith("<")}
    if missing := sorted(there ^ named):
        raise SystemExit(f"docs/site/navigation.toml and docs/*.md differ in: {', '.join(missing)}.")


def _contents(page: SitePage) -> str:
    """The list of a page's parts, which Sphinx also puts into the navigation."""
    if not page.children:
        return ""
    below = "\n".join(f"/{child.place}" for child in page.children)
    return f"\n```{{toctree}}\n:maxdepth: 1\n\n{below}\n```\n"


def _index(journeys: list[dict], pages: dict[str, SitePage]) -> str:
    text = (DOCS / "index.md").read_text()
    for journey in journeys:
        here = [(pages[_place(name)], about) for name, about in journey["pages"].items()]
        text += f"\n## {journey['title']}\n\n| | |\n|---|---|\n"
        text += "".join(f"| [{page.title}]({page.place}.md) | {about} |\n" for page, about in here)
        listed = "\n".join(f"/{page.place}" for page, _ in here)
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {journey['title']}\n\n{listed}\n```\n"
    return text


def _rows(glossary: str) -> Iterator[list[str]]:
    """The cells of each row of the glossary's tables."""
    for is_code, part in blocks(glossary):
        for line in [] if is_code else part.splitlines():
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) == 4 and cells[0] not in ("term", "---"):
                yield cells


def _entries(cell: str) -> list[str]:
    return [term.strip() for term in cell.split(",")]


def _terms(glossary: str) -> dict[str, str]:
    """Each term as it may be written, also in the plural and at the start of a sentence, to its entry."""
    found: dict[str, str] = {}
    for cells in _rows(glossary):
        for entry in _entries(cells[0]):
            for written in (entry, f"{entry}s"):
                found.setdefault(written, entry)
                found.setdefault(written[0].upper() + written[1:], entry)
    return found


def _as_glossary(markdown: str) -> str:
    """The tables as glossaries of Sphinx, to whose entries terms link."""
    lines: list[str] = []
    seen: set[str] = set()
    for line in markdown.splitlines():
        rows = list(_rows(line))
        if rows:
            lines += _entry(rows[0], seen)
        elif not line.startswith("|"):
            lines.append(line)
    return "\n".join(lines) + "\n"


def _entry(cells: list[str], seen: set[str]) -> list[str]:
    term, meaning, in_code, instead = cells
    entries = [entry for entry in _entries(term) if entry not in seen]
    seen.update(entries)
    if not entries:
        return []
    sentences = [
        _sentence(meaning),
        f"In code: {in_code}." if in_code else "",
        f"Not: {instead}." if instead else "",
    ]
    body = " ".join(sentence for sentence in sentences if sentence) or "As in the field."
    return ["", "```{glossary}", *entries, f"  {body}", "```"]


def _sentence(words: str) -> str:
    return words and f"{words[0].upper()}{words[1:]}{'' if words[-1] in '.?' else '.'}"


def build(out: Path) -> None:
    """Writes the site to `out`. Raises subprocess.CalledProcessError where Sphinx warns."""
    with tempfile.TemporaryDirectory() as folder:
        sources(Path(folder))
        arguments = [
            "-W",
            "--keep-going",
            "-q",
            "-j",
            "auto",
            "-b",
            "html",
            "-d",
            f"{folder}/.doctrees",
            folder,
            str(out),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DOCS.parent), *sys.path])}
        subprocess.run([sys.executable, "-m", "sphinx", *arguments], check=True, env=environment)  # noqa: S603


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    import django

    django.setup()
    build(arguments.out)


if __name__ == "__main__":
    main()
