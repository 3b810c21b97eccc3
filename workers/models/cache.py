"""Embeddings of chunks, kept by content: the same chunk is encoded once, whoever sends it."""

import threading
from collections import OrderedDict

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
