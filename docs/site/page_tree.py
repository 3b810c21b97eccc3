"""Markdown pages split by their headings, so that no page of the site is long.

A page of `docs/` stays one file for its editors. On the site, a page of more than `LONGEST` words becomes its
introduction and a page for each of its sections, and so on down to the smallest heading. Places are URL paths without
suffix: `researchers`, `researchers/training`, `researchers/training/objectives`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

LONGEST = 1200
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$")


@dataclass(frozen=True)
class Section:
    """A heading, the text before the next heading of any level, and the sections below it."""

    level: int
    title: str
    text: str
    anchor: str
    sections: "tuple[Section, ...]" = ()

    def lines(self, level: int) -> Iterator[str]:
        """As Markdown, with its heading at `level`."""
        yield f"{'#' * level} {self.title}\n\n{self.text.strip()}\n"
        for section in self.sections:
            yield from section.lines(level + 1)

    @property
    def words(self) -> int:
        return len(self.text.split()) + sum(section.words for section in self.sections)

    def anchors(self) -> Iterator[str]:
        yield self.anchor
        for section in self.sections:
            yield from section.anchors()


@dataclass
class SitePage:
    """A page of the site. `anchors`: those of the source file that are on it, the first being its title's."""

    place: str
    title: str
    text: str
    anchors: list[str]
    children: "list[SitePage]" = field(default_factory=list)

    def walk(self) -> "Iterator[SitePage]":
        yield self
        for child in self.children:
            yield from child.walk()


def slug(title: str) -> str:
    """The anchor of a heading, as GitHub makes it, without the number of a repeated one."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def blocks(markdown: str) -> Iterator[tuple[bool, str]]:
    """(whether it is code, its lines) of a text, in order: fenced code with its fences, and what is between."""
    code, lines, fence = False, list[str](), ""
    for line in markdown.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not code and found:
            if lines:
                yield False, "".join(lines)
            code, lines, fence = True, [line], found[1]
        elif code and found and line.strip().startswith(fence) and line.strip().strip(fence[0]) == "":
            yield True, "".join([*lines, line])
            code, lines = False, []
        else:
            lines.append(line)
    if lines:
        yield code, "".join(lines)


def parse(markdown: str) -> Section:
    """The tree of a file's headings. Raises ValueError where it does not begin with one `# Title`."""
    found: list[tuple[int, str, list[str]]] = []
    for is_code, text in blocks(markdown):
        for line in [text] if is_code else text.splitlines(keepends=True):
            heading = None if is_code else _HEADING.match(line.rstrip("\n"))
            if heading:
                found.append((len(heading[1]), heading[2], []))
            elif found:
                found[-1][2].append(line)
            elif line.strip():
                raise ValueError(
                    f"The file begins with {line.strip()[:60]!r}; begin it with a line '# Title'."
                )
    if not found or found[0][0] != 1 or any(level == 1 for level, *_ in found[1:]):
        raise ValueError("A file needs one heading of level 1, at its beginning.")
    seen: dict[str, int] = {}
    anchors = []
    for _, title, _ in found:
        name = slug(title)
        anchors.append(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1

    def below(start: int) -> tuple[Section, int]:
        level, title, lines = found[start]
        sections, at = [], start + 1
        while at < len(found) and found[at][0] > level:
            section, at = below(at)
            sections.append(section)
        return Section(level, title, "".join(lines), anchors[start], tuple(sections)), at

    return below(0)[0]


def split(section: Section, place: str) -> SitePage:
    """The pages of a section: one where it has at most `LONGEST` words or nothing to split by."""
    if section.words <= LONGEST or not section.sections:
        return SitePage(place, section.title, "\n".join(section.lines(1)), list(section.anchors()))
    page = SitePage(place, section.title, f"# {section.title}\n\n{section.text.strip()}\n", [section.anchor])
    page.children = [split(child, f"{place}/{child.anchor}") for child in section.sections]
    return page
