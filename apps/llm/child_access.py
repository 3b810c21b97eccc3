"""Access to a language model for a child process: its address, and the completions that are cached for it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.storage.model_folders import folder_of, name_of
from apps.llm.calls import SECONDS, record_local_usage
from apps.llm.completion_cache import store_completions
from apps.llm.models import LLMConnection
from apps.llm.relay import relay

_SLACK_SECONDS = 10  # that a child waits for the relay beyond the time of a call


@dataclass
class JsonLinesTail:
    """Reads the lines that are added to a file while another process writes it. offset: bytes read so far."""

    path: Path
    offset: int = 0

    def read_new(self) -> list[dict[str, Any]]:
        """The complete lines since the last call."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            complete = stream.read().rpartition(b"\n")[0]
        if not complete:
            return []
        self.offset += len(complete) + 1
        return [json.loads(line) for line in complete.splitlines()]


@dataclass
class LLMAccess:
    """server: for the child's configuration (`workers.llm.LLMServer`). environment: for its environment alone."""

    llm_connection: LLMConnection
    server: Mapping[str, Any]
    new_completions: JsonLinesTail
    environment: Mapping[str, str] = field(default_factory=dict)

    def store_new_completions(self) -> bool:
        """Cache the completions since the last call. Returns whether there were any."""
        lines = self.new_completions.read_new()
        if lines:
            store_completions(llm_connection=self.llm_connection, lines=lines)
        return bool(lines)


@contextmanager
def open_llm_access(
    llm_connection: LLMConnection, folder: Path, purpose: str, *, trajectories: Sequence[int] | None = None
) -> Iterator[LLMAccess]:
    """Write cached completions to `answers.jsonl` of the folder, and cache what the child adds, also where it fails.

    purpose: one of `SpendingPurpose`. trajectories: only completions about these are written. Raises DomainError where
    the connection cannot be used.
    """
    path = folder / "answers.jsonl"
    cached = llm_connection.completions.all()
    if trajectories is not None:
        cached = cached.filter(trajectory__in=trajectories)
    write_json_lines(path, cached.values("key", "answer").iterator())
    tail = JsonLinesTail(path, path.stat().st_size)
    server = {
        "model": llm_connection.model,
        "answer_tokens": llm_connection.answer_tokens,
        "pictures": llm_connection.pictures_per_call,
        "picture_pixels": llm_connection.picture_pixels,
    }
    if llm_connection.is_local:
        server |= {
            "model": name_of(llm_connection.folder),
            "folder": str(folder_of(llm_connection.folder)),
            "device": settings.TRAINING_DEVICE,
        }
        with _stored_at_the_end(LLMAccess(llm_connection, server, tail)) as access:
            yield access
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        record_local_usage(llm_connection, result["usage"], purpose)
        return
    with relay(llm_connection, purpose) as (address, token):
        server |= {"base_url": address, "timeout": SECONDS + _SLACK_SECONDS}
        environment = {"OPENAI_API_KEY": token}
        with _stored_at_the_end(LLMAccess(llm_connection, server, tail, environment)) as access:
            yield access


def write_json_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in lines)


@contextmanager
def _stored_at_the_end(access: LLMAccess) -> Iterator[LLMAccess]:
    try:
        yield access
    finally:
        access.store_new_completions()
