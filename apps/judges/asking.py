"""What a child process of the core needs to ask a language model: where it is, and what it answered before."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.storage.model_folders import folder_of, name_of
from apps.judges.calls import SECONDS, note_use
from apps.judges.models import LanguageModel
from apps.judges.relay import relay
from apps.judges.services.language_models import keep_answers

_ANSWERS = "answers.jsonl"


@dataclass
class Asking:
    """server: for the child's configuration (`workers.judge.Server`). given: for its environment alone."""

    language_model: LanguageModel
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
        keep_answers(language_model=self.language_model, lines=map(json.loads, whole.splitlines()))
        return True


@contextmanager
def asking(language_model: LanguageModel, folder: Path, purpose: str) -> Iterator[Asking]:
    """Kept answers go into the folder; those that come are kept at the end, whatever happens.

    purpose: one of `Spending.Purpose`. Raises DomainError where the model may not be asked.
    """
    path = folder / _ANSWERS
    with path.open("w", encoding="utf-8") as out:
        for one in language_model.answers.iterator():
            out.write(json.dumps({"key": one.key, "answer": one.answer}) + "\n")
    read = path.stat().st_size
    common = {"model": language_model.model, "answer_tokens": language_model.answer_tokens}
    if language_model.is_local:
        folder_read = str(folder_of(language_model.folder))
        common["model"] = name_of(language_model.folder)
        server = common | {"folder": folder_read, "device": settings.TRAINING_DEVICE}
        yield from _kept(Asking(language_model, folder, server, {}, read))
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        note_use(language_model, result["usage"], purpose)
        return
    with relay(language_model, purpose) as (address, word):
        server = common | {"base_url": address, "timeout": SECONDS + 10}
        yield from _kept(Asking(language_model, folder, server, {"OPENAI_API_KEY": word}, read))


def _kept(asking: Asking) -> Iterator[Asking]:
    try:
        yield asking
    finally:
        asking.keep()
