"""Gemma 4's way of writing objects: `{order:<|"|>7<|"|>,n:2,deep:{a:[1,true]}}`."""

from dataclasses import dataclass
from typing import Any

from workers.schema.chat_text.strict_values import number

_QUOTE = '<|"|>'
_NAMES = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}
_DEEPEST = 64


def read_gemma_object(text: str) -> dict[str, Any] | None:
    """None for what is no such object."""
    try:
        reading = _Reading(text)
        value = reading.value(0)
    except (ValueError, IndexError):
        return None
    return value if isinstance(value, dict) and reading.at == len(text) else None


@dataclass(slots=True)
class _Reading:
    text: str
    at: int = 0

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if self.text.startswith(_QUOTE, self.at):
            return self._quoted()
        if self.text[self.at] == "{":
            return self._object(depth)
        if self.text[self.at] == "[":
            return self._list(depth)
        word = self._until(",}]")
        return _NAMES[word] if word in _NAMES else number(word)

    def _object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while self.text[self.at] != "}":
            key = self._quoted() if self.text.startswith(_QUOTE, self.at) else self._until(":")
            if self.text[self.at] != ":":
                raise ValueError("a key without a value")
            if key in found:
                raise ValueError("a key twice")
            self.at += 1
            found[key] = self.value(depth + 1)
            self._skip_comma("}")
        self.at += 1
        return found

    def _list(self, depth: int) -> list[Any]:
        self.at += 1
        found = []
        while self.text[self.at] != "]":
            found.append(self.value(depth + 1))
            self._skip_comma("]")
        self.at += 1
        return found

    def _skip_comma(self, closing: str) -> None:
        if self.text[self.at] == ",":
            self.at += 1
        elif self.text[self.at] != closing:
            raise ValueError("values without a comma between them")

    def _quoted(self) -> str:
        start = self.at + len(_QUOTE)
        end = self.text.index(_QUOTE, start)
        self.at = end + len(_QUOTE)
        return self.text[start:end]

    def _until(self, marks: str) -> str:
        start = self.at
        while self.text[self.at] not in marks:
            self.at += 1
        return self.text[start : self.at]
