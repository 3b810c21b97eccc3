"""Replies of judges in memory: the same question is not asked twice. Bounded in bytes, least recently used out."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

_SLOT = 300  # bytes about, of a key and its place in the table


@dataclass(eq=False, slots=True)
class JudgeCache:
    """Thread-safe. nbytes: about what it takes."""

    max_bytes: int
    nbytes: int = 0
    _entries: "OrderedDict[str, bytes]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def for_model(self, model_key: str) -> "LanguageModelCache":
        """The replies of one language model. model_key: identifies it."""
        return LanguageModelCache(self, model_key)

    def get(self, key: str) -> Any:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
        return msgspec.json.decode(found)

    def put(self, key: str, answer: Any) -> None:
        data = msgspec.json.encode(answer)
        with self._lock:
            before = self._entries.pop(key, None)
            self.nbytes += _size(data) - (0 if before is None else _size(before))
            self._entries[key] = data
            while self.nbytes > self.max_bytes and self._entries:
                _, oldest = self._entries.popitem(last=False)
                self.nbytes -= _size(oldest)


@dataclass(frozen=True, slots=True)
class LanguageModelCache:
    """`workers.llm.client.Answers`."""

    kept: JudgeCache
    model_key: str

    def get(self, key: str) -> Any:
        return self.kept.get(f"{self.model_key} {key}")

    def keep(self, key: str, answer: Any, about: Mapping[str, str]) -> None:
        self.kept.put(f"{self.model_key} {key}", answer)


def _size(data: bytes) -> int:
    return len(data) + _SLOT
