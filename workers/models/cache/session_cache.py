"""Keys and values of trajectories that grow: step t + 1 costs its new tokens only. Bounded in bytes, oldest use out."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from workers.text import Session

Ids = NDArray[np.int64]
_SEED_TOKENS = 32  # fewer in common are not worth copying


@dataclass(eq=False, slots=True)
class Past:
    """What was computed of one sequence. ids: [tokens]. layers: of each, keys and values [heads, room, width], of
    which the first `len(ids)` are filled. states: the hidden states at the places that were read.
    """

    ids: Ids
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    states: dict[int, Tensor] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        kept = sum(part.nbytes for layer in self.layers for part in layer)
        return self.ids.nbytes + kept + sum(state.nbytes + 100 for state in self.states.values())

    def cut(self, length: int) -> None:
        """Only the first `length` tokens are of use."""
        self.ids = self.ids[:length]
        self.states = {place: state for place, state in self.states.items() if place < length}

    def copied(self, length: int) -> "Past":
        layers = [(keys[:, :length].clone(), values[:, :length].clone()) for keys, values in self.layers]
        states = {place: state for place, state in self.states.items() if place < length}
        return Past(self.ids[:length].copy(), layers, states)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """[heads, new, width] behind what is there; all of it, as views [heads, all, width]."""
        start, end = len(self.ids), len(self.ids) + keys.shape[1]
        if layer == len(self.layers):
            self.layers.append((keys[:, :0], values[:, :0]))
        room = self.layers[layer][0].shape[1]
        if room < end:
            grown = end if not room else max(end, room + room // 2)
            self.layers[layer] = (
                _grown(self.layers[layer][0], grown, start),
                _grown(self.layers[layer][1], grown, start),
            )
        kept_keys, kept_values = self.layers[layer]
        kept_keys[:, start:end], kept_values[:, start:end] = keys, values
        return kept_keys[:, :end], kept_values[:, :end]


class SessionCache:
    """Sessions of several models under one bound: each sees what is `within` its own. Safe to share."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[tuple[int, Session], tuple[Past, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._owners = count()

    def __len__(self) -> int:
        return len(self._entries)

    def within(self) -> "SessionSpace":
        """For one model."""
        return SessionSpace(self, next(self._owners))

    def take(self, owner: int, session: Session) -> Past | None:
        with self._lock:
            past, size = self._entries.pop((owner, session), (None, 0))
            self.bytes -= size
            return past

    def put(self, owner: int, session: Session, past: Past) -> None:
        size = past.nbytes
        if size > self.max_bytes:
            return
        with self._lock:
            _, old = self._entries.pop((owner, session), (None, 0))
            self.bytes += size - old
            self._entries[owner, session] = past, size
            while self.bytes > self.max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self.bytes -= dropped

    def pasts_in_space(self, owner: int, space: str) -> list[Past]:
        """The pasts of all sessions of a space."""
        with self._lock:
            return [
                past
                for (whose, session), (past, _) in self._entries.items()
                if whose == owner and session.space == space
            ]

    def forget(self, owner: int) -> None:
        with self._lock:
            for key in [key for key in self._entries if key[0] == owner]:
                self.bytes -= self._entries.pop(key)[1]


@dataclass(frozen=True, slots=True)
class SessionSpace:
    """One model's part of a SessionCache."""

    cache: SessionCache
    owner: int

    def take(self, session: Session, ids: Ids, reads: Sequence[int]) -> Past:
        """What is known of the beginning of `ids`, cut to what they share and to where every read is known.

        It is the caller's until it is `put` back. A new session begins as a copy of another one of its space, where
        one begins alike: the roll-outs of a group share their prompt.
        """
        past = self.cache.take(self.owner, session)
        if past is not None:
            past.cut(_usable(past, ids, reads))
            return past
        others = [
            (_usable(past, ids, reads), past) for past in self.cache.pasts_in_space(self.owner, session.space)
        ]
        shared, best = max(others, default=(0, None), key=lambda other: other[0])
        return Past(ids[:0]) if best is None or shared < _SEED_TOKENS else best.copied(shared)

    def put(self, session: Session, past: Past) -> None:
        self.cache.put(self.owner, session, past)

    def forget(self) -> None:
        """The model is no longer served."""
        self.cache.forget(self.owner)


def _usable(past: Past, ids: Ids, reads: Sequence[int]) -> int:
    """How many tokens of `past` serve `ids`: those both begin with, up to the first read that is not known."""
    length = min(len(past.ids), len(ids))
    different = np.flatnonzero(past.ids[:length] != ids[:length])
    shared = int(different[0]) if len(different) else length
    return min([shared, *(read for read in reads if read < shared and read not in past.states)])


def _grown(part: Tensor, room: int, filled: int) -> Tensor:
    out = part.new_empty(part.shape[0], room, part.shape[2])
    out[:, :filled] = part[:, :filled]
    return out
