"""Language models of the judges of endpoints, called through `apps.llm` with its limits, costs, keys and checks."""

import threading
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from apps.core.storage.model_folders import folder_of
from apps.llm.calls import MOST_WAITED
from apps.llm.models import LLMConnection, SpendingPurpose
from apps.llm.relay import relay
from apps.rewards.serving.judge_cache import JudgeCache

MOST_LOADED = 2  # that are in a folder
_SLACK = 10.0  # seconds that the relay has beyond the server's


@dataclass(frozen=True, slots=True)
class _ConnectionState:
    """Where a language model is. The relay reads its key and limits for each call."""

    base_url: str
    model: str
    folder: str
    answer_tokens: int
    pictures: int
    picture_pixels: int

    @classmethod
    def from_row(cls, row: LLMConnection) -> "_ConnectionState":
        return cls(
            row.base_url,
            row.model,
            row.folder,
            row.answer_tokens,
            row.pictures_per_call,
            row.picture_pixels,
        )


@dataclass(frozen=True, slots=True)
class _OpenConnection:
    """model: a `workers.llm.completions.Model`. closes: its relay."""

    state: _ConnectionState
    model: Any
    closes: ExitStack


class LanguageModels:
    """Thread-safe. Open connections and loaded models live as long as the process."""

    def __init__(self, cache: JudgeCache) -> None:
        self._cache = cache
        self._open: OrderedDict[tuple[int, float], _OpenConnection] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[int, threading.Lock] = {}

    def get(self, row: LLMConnection, seconds: float) -> Any:
        """A `workers.llm.client.LLMClient`, its usage counted from zero. seconds: limit of a call.

        Raises DomainError where it may not be called, RewardError where it cannot be loaded.
        """
        from workers.llm import LLMServer  # and openai's client, which importing this module should not cost
        from workers.llm.client import LLMClient

        state = _ConnectionState.from_row(row)
        common: dict[str, Any] = {
            "answer_tokens": state.answer_tokens,
            "retries": 0,
            "pictures": state.pictures,
            "picture_pixels": state.picture_pixels,
        }
        if row.is_local:
            server = LLMServer(
                **common, model=row.name, folder=str(folder_of(state.folder)), device=settings.REWARDS_DEVICE
            )
            seconds = 0.0
        else:
            server = LLMServer(
                **common, model=state.model, timeout=seconds + min(seconds, MOST_WAITED) + _SLACK
            )
        key = (row.pk, seconds)
        found = self._find(key, state)
        if found is None:
            with self._lock:
                opening = self._opening.setdefault(row.pk, threading.Lock())
            with opening:  # a folder is not loaded twice
                found = self._find(key, state) or self._add(key, state, row, server, seconds)
        model_key = f"{row.pk} {state.base_url} {state.folder}"
        return LLMClient(server, self._cache.for_model(model_key), model=found.model)

    def close(self) -> None:
        with self._lock:
            evicted = list(self._open.values())
            self._open.clear()
        for connection in evicted:
            connection.closes.close()

    def _find(self, key: tuple[int, float], state: _ConnectionState) -> _OpenConnection | None:
        with self._lock:
            found = self._open.get(key)
            if found is None or found.state != state:
                return None
            self._open.move_to_end(key)
            return found

    def _add(
        self, key: tuple[int, float], state: _ConnectionState, row: LLMConnection, server: Any, seconds: float
    ) -> _OpenConnection:
        from workers.llm.client import model_of

        with ExitStack() as opening:
            word = ""
            if not row.is_local:
                waits = min(seconds, MOST_WAITED)
                opened = relay(row, SpendingPurpose.ENDPOINTS, seconds=seconds, waits=waits)
                address, word = opening.enter_context(opened)
                server = replace(server, base_url=address)
            added = _OpenConnection(state, model_of(server, word), opening.pop_all())
        with self._lock:
            evicted = [
                found for other, found in self._open.items() if other[0] == row.pk and found.state != state
            ]
            self._open = OrderedDict(
                (other, found)
                for other, found in self._open.items()
                if other[0] != row.pk or found.state == state
            )
            self._open[key] = added
            loaded = [other for other, found in self._open.items() if found.state.folder]
            evicted += [self._open.pop(other) for other in loaded[:-MOST_LOADED]]
        for connection in evicted:
            connection.closes.close()
        return added
