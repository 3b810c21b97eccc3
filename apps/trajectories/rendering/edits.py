"""Edits of files by a tool call as diffs: agents send the text before and the text after as two arguments."""

from collections.abc import Mapping
from typing import Any

from rapidfuzz.distance import LCSseq

_PAIRS = (  # of Claude Code and Gemini CLI, Anthropic's editor, opencode, others
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("oldString", "newString"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
)
_MOST = 3000  # lines of either text that are compared; of longer ones all are removed, and all are added


def edit_names(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of the arguments that are the text before and after; None if this is no edit."""
    for old, new in _PAIRS:
        if isinstance(arguments.get(old), str) and isinstance(arguments.get(new), str):
            return old, new
    return None


def line_diff(old: str, new: str) -> str:
    """All lines of both texts, each after `-`, `+` or a space, as in a unified diff."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST:
        return "\n".join([*(f"-{line}" for line in before), *(f"+{line}" for line in after)])
    lines: list[str] = []
    for code in LCSseq.opcodes(before, after):
        if code.tag == "equal":
            lines += (f" {line}" for line in before[code.src_start : code.src_end])
            continue
        lines += (f"-{line}" for line in before[code.src_start : code.src_end])
        lines += (f"+{line}" for line in after[code.dest_start : code.dest_end])
    return "\n".join(_together(lines))


def _together(lines: list[str]) -> list[str]:
    """Of neighbouring changes, those that remove stand before those that add."""
    out: list[str] = []
    added: list[str] = []
    for line in lines:
        if line[0] == "+":
            added.append(line)
            continue
        if line[0] == " ":
            out += added
            added = []
        out.append(line)
    return out + added
