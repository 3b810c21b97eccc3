"""Links of pages after they were split, and the first use of each term of the glossary."""

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .page_tree import SitePage, blocks

_LINK = re.compile(r"(?<!\\)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
# What is not prose: code, links and pictures, HTML, bold lead words, roles.
_APART = re.compile(r"(`+[^`]*`+|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|\*\*[^*]+\*\*|\{term\}`[^`]*`)")
_PROSE = re.compile(r"^(?![#|>]|\s{4}|\s*$)")


class DeadLink(ValueError):
    """A link to a page, a heading or a file that is not there."""


@dataclass(frozen=True)
class SiteLinks:
    """Where each page and heading of the sources went.

    pages: source name ("researchers") -> its first page of the site. files: those that the site copies, relative to
    docs/.
    others: files of the repository that a page of the site stands for, relative to docs/ -> its place.
    repository: whether a path relative to docs/ is another file of the repository; its name stays, without a link.
    """

    pages: Mapping[str, SitePage]
    files: frozenset[str]
    others: Mapping[str, str]
    repository: Callable[[str], bool]

    def rewritten(self, page: SitePage, source: str) -> str:
        """The text of a page with its links made relative to its new place. Raises DeadLink."""

        def link(found: re.Match[str]) -> str:
            target = self._target(found[2], page, source)
            return found[1] if target is None else f"[{found[1]}]({target})"

        return "".join(part if is_code else _LINK.sub(link, part) for is_code, part in blocks(page.text))

    def _target(self, link: str, page: SitePage, source: str) -> str | None:
        if "://" in link or link.startswith("mailto:"):
            return link
        path, _, anchor = link.partition("#")
        name = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else f"{source}.md"
        here = posixpath.dirname(page.place)
        if name in self.others:
            return posixpath.relpath(self.others[name], here or ".") + ".md"
        if name.endswith(".md") and name[:-3] in self.pages:
            found = _with_anchor(self.pages[name[:-3]], anchor)
            if found is None:
                raise DeadLink(f"docs/{source}.md links to {link}: no heading of {name} has this anchor.")
            is_title = not anchor or found.anchors[0] == anchor
            if found is page and not is_title:
                return f"#{anchor}"
            return posixpath.relpath(found.place, here or ".") + ".md" + ("" if is_title else f"#{anchor}")
        if name in self.files:
            return posixpath.relpath(name, here or ".")
        if self.repository(name):
            return None
        raise DeadLink(f"docs/{source}.md links to {link}, which is not there.")


def _with_anchor(first: SitePage, anchor: str) -> SitePage | None:
    if not anchor:
        return first
    return next((page for page in first.walk() if anchor in page.anchors), None)


def with_terms(markdown: str, terms: Mapping[str, str]) -> str:
    """The text with the first use of each term in prose as a link to the glossary. terms: as written -> entry."""
    used: set[str] = set()
    longest_first = "|".join(re.escape(written) for written in sorted(terms, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w/`.-])(?:{longest_first})(?![\w`-])")

    def linked(found: re.Match[str]) -> str:
        written, entry = found[0], terms[found[0]]
        if entry in used:
            return written
        used.add(entry)
        return f"{{term}}`{written} <{entry}>`"

    parts = []
    for is_code, part in blocks(markdown):
        for line in [part] if is_code else part.splitlines(keepends=True):
            pieces = [line] if is_code or not _PROSE.match(line) else _APART.split(line)
            # Of what the split gives, every second piece is apart.
            if len(pieces) > 1 or (_PROSE.match(line) and not is_code):
                pieces[::2] = [pattern.sub(linked, piece) for piece in pieces[::2]]
            parts.append("".join(pieces))
    return "".join(parts)
