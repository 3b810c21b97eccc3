"""A growing window over a stream of text, from which whole JSON values are taken one by one."""

import codecs
import json
from typing import Any, BinaryIO

from apps.core.storage.unpacking import MOST_BLANK
from workers.schema import RECORD_LIMITS, TooMuchJson, check_json_shape

_PIECE = 2**20
_SMALL = 2**16
_SPACE = " \t\r\n\ufeff"
NO_FURTHER = "what follows is not read. Take them out."
_MARGIN = 16  # an escape or a literal cut off by the window's end reports an error this close to it


class MalformedJson(Exception):
    """Says what is wrong; line: where, if it is not where the value began."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class JsonTextReader:
    """line: that of the next character, from 1. limit: characters one value may have."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self.line = 1
        self._stream, self._limit = stream, limit
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._window, self._at, self._ended = "", 0, False
        self._json = json.JSONDecoder()
        self._is_dense = False  # the window holds more than one value may; it may be of many values

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        blank = 0
        while True:
            while self._at < len(self._window) and self._window[self._at] in _SPACE:
                blank += 1
                if blank > MOST_BLANK:
                    raise MalformedJson(
                        f"there are over {MOST_BLANK:,} empty characters in a row; {NO_FURTHER}", self.line
                    )
                self.line += self._window[self._at] == "\n"
                self._at += 1
            if self._at < len(self._window) or not self._fill():
                return self._window[self._at : self._at + 1]

    def take(self, wanted: str) -> str:
        """Take the next character, which is one of `wanted`."""
        found = self.peek()
        if not found or found not in wanted:
            what = repr(found) if found else "the end of the file"
            raise MalformedJson(f"not valid JSON: expected {' or '.join(wanted)}, found {what}.", self.line)
        self._at += 1
        return found

    def value(self) -> tuple[bytes, Any]:
        """Take the next JSON value: its own bytes, and what it says."""
        self.peek()
        while True:
            try:
                if self._is_dense and (small := self._small()) is not None:
                    return small
                value, end = self._json.raw_decode(self._window, self._at)
            except TooMuchJson as error:
                raise MalformedJson(error.message) from None
            except json.JSONDecodeError as error:
                if self._may_be_cut(error) and self._fill():
                    continue
                line = self.line + self._window.count("\n", self._at, error.pos)
                raise MalformedJson(f"not valid JSON: {error.msg}.", line) from None
            except ValueError as error:  # a whole number of thousands of digits
                raise MalformedJson(f"not readable as JSON: {error}.") from None
            except RecursionError:
                raise MalformedJson("nested too deeply to be read.") from None
            if end < len(self._window) or not self._fill():  # a number may go on
                return self._taken(end), value

    def _small(self) -> tuple[bytes, Any] | None:
        """The next value, where it ends soon. Else it is looked at before it is built: it may become gigabytes."""
        piece = self._window[self._at : self._at + _SMALL]
        try:
            value, end = self._json.raw_decode(piece)
        except (ValueError, RecursionError):
            end = len(piece)
        if end < len(piece):
            return self._taken(self._at + end), value
        check_json_shape(self._window, RECORD_LIMITS, start=self._at, first=True)
        return None

    def _taken(self, end: int) -> bytes:
        raw = self._window[self._at : end].encode()
        if len(raw) > self._limit:
            self._refuse()
        self.line += raw.count(b"\n")
        self._at = end
        return raw

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._window) - _MARGIN

    def _fill(self) -> bool:
        """Widen the window, dropping what was taken. Whether there was more."""
        if self._ended:
            return False
        if len(self._window) - self._at > self._limit:
            self._refuse()
        # Doubling what is looked at keeps the repeated decoding of a long value linear in its length.
        raw = self._stream.read(max(_PIECE, len(self._window) - self._at))
        self._ended = not raw
        try:
            more = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            raise MalformedJson(f"not UTF-8 ({error.reason}); save the file as UTF-8.", self.line) from None
        self._window, self._at = self._window[self._at :] + more, 0
        opened = self._window.count("[") + self._window.count("{")
        most, values = RECORD_LIMITS.containers, RECORD_LIMITS.values
        self._is_dense = opened > most or opened + self._window.count(",") > values
        return bool(more) or not self._ended

    def _refuse(self) -> None:
        raise MalformedJson(
            f"the record has more than {self._limit // 2**20} MB; split it, or raise TOUCHSTONE_MAX_RECORD_MB."
        )
