"""Queries of semantic search, embedded as stored passages are. For the web process only: it has no torch."""

import threading
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from apps.rewards.serving.access import INTERNAL, Caller
from apps.rewards.serving.problems import Problem
from apps.rewards.serving.requests import read_document
from apps.rewards.serving.state import ServiceState
from workers.schema.decode import convert

MAX_TEXTS, MAX_CHARACTERS = 16, 4000


class QueryEmbedder:
    """The embedded encoder on the CPU, loaded at the first query. May be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedder: Any = None

    def embed(self, texts: list[str]) -> list[list[float]]:
        """[texts, hidden], of unit length. Raises RewardError where the encoder cannot be loaded."""
        with self._lock:
            if self._embedder is None:
                from workers.induce.embedding import Embedder  # brings torch along

                self._embedder = Embedder()
            rows: list[list[float]] = self._embedder(texts).tolist()
            return rows


_queries = QueryEmbedder()


async def embed_queries(request: Request, state: ServiceState, caller: Caller) -> list[list[float]]:
    """{"texts": [...]} to a vector of each."""
    if caller.name != INTERNAL:
        raise Problem(f"There is no {request.url.path} here.", status=404)
    document = await state.intake.read(request, _parse, caller, state.intake.parsers(caller))
    texts = convert(document.get("texts"), list[str], pointer="/texts")
    if not 1 <= len(texts) <= MAX_TEXTS or any(len(text) > MAX_CHARACTERS for text in texts):
        raise Problem(
            f"Send 1 to {MAX_TEXTS} texts of at most {MAX_CHARACTERS} characters.",
            status=422,
            pointer="/texts",
        )
    return await state.explainers.slot(caller).run(_queries.embed, texts)


def _parse(body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    return read_document(body)
