"""What commands print: text and tables for people, JSON for programs, progress on standard error."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TextIO

from touchstone_client.progress import Progress
from touchstone_client.tables import to_json

_WIDEST = 60  # characters of a cell
_LINE_EVERY = 5.0  # seconds between progress lines in a pipe
_DRAW_EVERY = 0.1


class Output:
    """With as_json, standard output is for JSON alone, and what is for people goes to standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def say(self, text: str) -> None:
        """A line for people."""
        _print(text, sys.stderr if self.as_json else sys.stdout)

    def note(self, text: str) -> None:
        """A line on standard error."""
        _print(text, sys.stderr)

    def result(self, result: Mapping[str, Any]) -> None:
        """The JSON object of the command, where it was asked for."""
        if self.as_json:
            self.json_line(result)

    def json_line(self, value: Any) -> None:
        print(to_json(value), flush=True)  # noqa: T201

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        cells = [[_cell(value) for value in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        for row in [list(heads), *cells]:
            self.say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    @contextmanager
    def progress(self, label: str, unit: str = "") -> Iterator[Progress]:
        """For calls that take `progress`: a bar of tqdm on a terminal that has it, else lines of text."""
        if sys.stderr.isatty() and find_spec("tqdm") is not None:
            yield True
            return
        text = _TextProgress(label, unit)
        try:
            yield text
        finally:
            text.end()


class _TextProgress:
    """On a terminal one line that is written over; in a pipe a line every few seconds."""

    def __init__(self, label: str, unit: str) -> None:
        self._label, self._unit = label, unit
        self._terminal = sys.stderr.isatty()
        self._printed = time.monotonic()
        self._drawn = False

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._printed < (_DRAW_EVERY if self._terminal else _LINE_EVERY) and done != total:
            return
        if not self._terminal and now - self._printed < _LINE_EVERY:
            return
        self._printed = now
        whole = "" if total is None else f" of {total:,}"
        line = printable(f"{self._label}: {done:,}{whole}{self._unit}")
        if self._terminal:
            sys.stderr.write(f"\r{line}\x1b[K")
            self._drawn = True
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def printable(text: str) -> str:
    """Without what would act on the terminal: names and logs are what others wrote."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def _print(text: str, stream: TextIO) -> None:
    print(printable(text), file=stream, flush=True)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    text = " ".join(printable(text).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def tolerate_encoding() -> None:
    """A terminal that cannot show a character gets its escape, not an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def close_broken_pipe() -> None:
    """Nothing more can be written; Python would try when it ends, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
