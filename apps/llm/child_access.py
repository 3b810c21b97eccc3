"""What a child process of the core needs to ask a language model: where it is, and what it answered before."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.storage.model_folders import folder_of, name_of
from apps.llm.calls import SECONDS, record_local_usage
from apps.llm.completion_cache import store_completions
from apps.llm.models import LLMConnection
from apps.llm.relay import relay

_ANSWERS = "answers.jsonl"


@dataclass
class Asking:
    """server: for the child's configuration (`workers.llm.LLMServer`). given: for its environment alone."""

    llm_connection: LLMConnection
    folder: Path
    server: Mapping[str, Any]
    given: Mapping[str, str]
    read: int

    def keep(self) -> bool:
        """Store what was answered since the last time; whether there was anything."""
        with (self.folder / _ANSWERS).open("rb") as new:
            new.seek(self.read)
            whole = new.read().rpartition(b"\n")[0]
        if not whole:
            return False
        self.read += len(whole) + 1
        store_completions(llm_connection=self.llm_connection, lines=map(json.loads, whole.splitlines()))
        return True


@contextmanager
def asking(llm_connection: LLMConnection, folder: Path, purpose: str) -> Iterator[Asking]:
    """Kept answers go into the folder; those that come are kept at the end, whatever happens.

    purpose: one of `SpendingPurpose`. Raises DomainError where the model may not be asked.
    """
    path = folder / _ANSWERS
    with path.open("w", encoding="utf-8") as out:
        for one in llm_connection.completions.iterator():
            out.write(json.dumps({"key": one.key, "answer": one.answer}) + "\n")
    read = path.stat().st_size
    common = {"model": llm_connection.model, "answer_tokens": llm_connection.answer_tokens}
    if llm_connection.is_local:
        folder_read = str(folder_of(llm_connection.folder))
        common["model"] = name_of(llm_connection.folder)
        server = common | {"folder": folder_read, "device": settings.TRAINING_DEVICE}
        yield from _kept(Asking(llm_connection, folder, server, {}, read))
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        record_local_usage(llm_connection, result["usage"], purpose)
        return
    with relay(llm_connection, purpose) as (address, word):
        server = common | {"base_url": address, "timeout": SECONDS + 10}
        yield from _kept(Asking(llm_connection, folder, server, {"OPENAI_API_KEY": word}, read))


def _kept(asking: Asking) -> Iterator[Asking]:
    try:
        yield asking
    finally:
        asking.keep()
