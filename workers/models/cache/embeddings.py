"""Embeddings of chunks, kept by content: the same chunk is encoded once."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

import torch

_OVERHEAD = 200  # bytes of a dictionary entry with its key and tensor header, roughly


class ChunkCache:
    """Least recently used goes first once `max_bytes` are reached. Keys name the encoder too. Safe to share."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[bytes, torch.Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def within(self, space: str) -> "ChunkSpace":
        """The same cache and bound, for those of one space: no one learns what others have sent."""
        return ChunkSpace(self, space.encode() + b"\0")

    def get(self, key: bytes) -> torch.Tensor | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: bytes, embedding: torch.Tensor) -> None:
        """embedding: [hidden], float32, on the CPU."""
        size = embedding.nbytes + len(key) + _OVERHEAD
        if size > self.max_bytes:
            return
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = embedding.clone()  # a view would keep its whole batch alive
            self.bytes += size
            while self.bytes > self.max_bytes:
                old, dropped = self._entries.popitem(last=False)
                self.bytes -= dropped.nbytes + len(old) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class ChunkSpace:
    """A part of a ChunkCache, with its `get` and `put`."""

    cache: ChunkCache
    prefix: bytes

    def get(self, key: bytes) -> torch.Tensor | None:
        return self.cache.get(self.prefix + key)

    def put(self, key: bytes, embedding: torch.Tensor) -> None:
        self.cache.put(self.prefix + key, embedding)

    def forget(self) -> None:
        """A model is no longer served; what it has seen stays, for the next one on the same encoder."""
