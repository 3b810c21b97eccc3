"""Regular expressions, by RE2: its time grows with the text, whatever the expression and whatever the text.

`compiled` is for expressions that people write, `TextPattern` for ours wherever they meet text that others wrote. The
standard `re` is allowed in the few modules that `tests/test_patterns.py` lists, each with its reason.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Protocol

import re2

from workers.errors import InvalidRecord

MOST_CHARACTERS = 2000  # of an expression that people write
MOST_INSTRUCTIONS = 4000  # of its program: what one character of a text can cost
_MOST_MEMORY = 4 * 2**20
_MOST_SET_MEMORY = 64 * 2**20  # of states that are kept; where they are full, they are made again
# For classes, since RE2's \w and \s are ASCII only: `[{WORD}]` and `[{SPACE}]` are what \w and \s are to `re`.
WORD = r"\pL\pN_"
SPACE = r"\s\x0b\x1c-\x1f\x85\pZ"


class PatternMatch(Protocol):
    """What RE2 gives, as of `re.Match`."""

    def __getitem__(self, group: int | str) -> Any: ...
    def group(self, *groups: int | str) -> Any: ...
    def groups(self) -> tuple[Any, ...]: ...
    def groupdict(self) -> dict[str, Any]: ...
    def start(self, group: int = 0) -> int: ...
    def end(self, group: int = 0) -> int: ...
    def span(self, group: int = 0) -> tuple[int, int]: ...


class TextPattern:
    """An expression of ours for text of others. Flags are written into it: `(?i)`, `(?m)`, `(?s)`.

    A lone surrogate, which RE2 cannot read, is looked at as a question mark. Compiled when it is used: there are
    hundreds, and a process needs few of them.
    """

    __slots__ = ("_program", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._program: Any = None

    @property
    def _compiled(self) -> Any:
        if self._program is None:
            self._program = re2.compile(self.pattern, _options())
        return self._program

    def search(self, text: str) -> PatternMatch | None:
        found: PatternMatch | None = self._compiled.search(_readable(text))
        return found

    def match(self, text: str) -> PatternMatch | None:
        found: PatternMatch | None = self._compiled.match(_readable(text))
        return found

    def fullmatch(self, text: str) -> PatternMatch | None:
        found: PatternMatch | None = self._compiled.fullmatch(_readable(text))
        return found

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        found: Iterator[PatternMatch] = self._compiled.finditer(_readable(text))
        return found

    def findall(self, text: str) -> list[Any]:
        found: list[Any] = self._compiled.findall(_readable(text))
        return found

    def split(self, text: str, maxsplit: int = 0) -> list[str]:
        found: list[str] = self._compiled.split(_readable(text), maxsplit)
        return found

    def sub(self, replacement: str | Callable[[Any], str], text: str, count: int = 0) -> str:
        found: str = self._compiled.sub(replacement, _readable(text), count)
        return found

    def __repr__(self) -> str:
        return f"TextPattern({self.pattern!r})"


class TextPatternSet:
    """Several expressions of ours, looked for in one pass over a text."""

    __slots__ = ("_patterns", "_program")

    def __init__(self, patterns: Iterable[TextPattern]) -> None:
        self._patterns = tuple(patterns)
        self._program: Any = None

    @property
    def _compiled(self) -> Any:
        if self._program is None:
            options = _options()
            options.max_mem = _MOST_SET_MEMORY
            program = re2.Set.SearchSet(options)
            for pattern in self._patterns:
                program.Add(pattern.pattern)
            program.Compile()
            self._program = program
        return self._program

    def found_in(self, text: str) -> list[int]:
        """The places of the expressions that match anywhere in the text, in no order."""
        found: list[int] | None = self._compiled.Match(_readable(text))
        return found or []


def quote(text: str) -> str:
    """`text` as an expression that finds it and nothing else."""
    quoted: str = re2.escape(_readable(text))
    return quoted


@lru_cache(maxsize=256)
def compiled(expression: str) -> Any:
    """Raises InvalidRecord, without a pointer, for what RE2 does not take, and for what would take too long."""
    if len(expression) > MOST_CHARACTERS:
        raise InvalidRecord(
            f"the regular expression has {len(expression)} characters; it may have {MOST_CHARACTERS}. Split it."
        )
    try:
        found = re2.compile(expression, _options())
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidRecord(
            f"{expression!r} is not a regular expression of RE2 (no look-around, no back-references): {reason}."
        ) from None
    if found.programsize > MOST_INSTRUCTIONS:
        raise InvalidRecord(
            f"the regular expression becomes {found.programsize} instructions; it may become {MOST_INSTRUCTIONS}. "
            "Count less often ({900}), or name fewer classes of characters."
        )
    return found


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    return options


def _readable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()  # a question mark each: places stay
    return text
