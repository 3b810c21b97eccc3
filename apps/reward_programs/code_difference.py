"""The difference of two versions of code, line by line."""

from dataclasses import dataclass
from itertools import groupby

from rapidfuzz.distance import Indel

_AROUND = 3  # unchanged lines before and after what changed


@dataclass(frozen=True, slots=True)
class CodeLine:
    """mark: `+` added, `-` removed, a space for unchanged, `…` for unchanged lines that are left out."""

    mark: str
    text: str = ""


def changed_lines(before: str, after: str) -> list[CodeLine]:
    """Fewest lines removed and added; of those that did not change, only the nearest."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[CodeLine] = []
    for is_equal, steps in groupby(Indel.opcodes(old, new), key=lambda step: step.tag == "equal"):
        changes = list(steps)  # what is removed comes before what is added, in whatever order they were found
        removed = [text for step in changes for text in old[step.src_start : step.src_end]]
        lines += [CodeLine(" " if is_equal else "-", text) for text in removed]
        if not is_equal:
            lines += [
                CodeLine("+", text) for step in changes for text in new[step.dest_start : step.dest_end]
            ]
    return _without_the_far(lines)


def _without_the_far(lines: list[CodeLine]) -> list[CodeLine]:
    changed = [place for place, line in enumerate(lines) if line.mark != " "]
    near = {place + offset for place in changed for offset in range(-_AROUND, _AROUND + 1)}
    shown: list[CodeLine] = []
    for place, line in enumerate(lines):
        if place in near:
            shown.append(line)
        elif not shown or shown[-1].mark != "…":
            shown.append(CodeLine("…"))
    return shown
