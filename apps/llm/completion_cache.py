"""Completions that were accepted are stored, so that the same question is paid for once."""

from collections.abc import Iterable
from typing import Any

from django.db import models, transaction

from apps.llm.models import CachedCompletion, LLMConnection

_BATCH_SIZE = 1000
# What a completion is about, by field: the name that `answers.jsonl` has for it.
_SUBJECTS = {"comment": "comment", "trajectory": "trajectory", "other_trajectory": "other"}


def store_completions(*, llm_connection: LLMConnection, lines: Iterable[dict[str, Any]]) -> int:
    """Store lines of `answers.jsonl`; return how many were read.

    Lines that are stored already, or whose subject has been deleted, are left out.
    """
    read = list(lines)
    for start in range(0, len(read), _BATCH_SIZE):
        batch = read[start : start + _BATCH_SIZE]
        with transaction.atomic():
            locked = LLMConnection.objects.select_for_update(no_key=True).filter(pk=llm_connection.pk)
            if not locked.exists():
                return start
            existing = {
                field: _lock_existing(field, [_subject_id(line, field) for line in batch])
                for field in _SUBJECTS
            }
            CachedCompletion.objects.bulk_create(
                (
                    CachedCompletion(
                        llm_connection=llm_connection,
                        key=line["key"],
                        answer=line["answer"],
                        **{f"{field}_id": _subject_id(line, field) for field in _SUBJECTS},
                    )
                    for line in batch
                    if all(_subject_id(line, field) in existing[field] for field in _SUBJECTS)
                ),
                ignore_conflicts=True,
            )
    return len(read)


def _subject_id(line: dict[str, Any], field: str) -> int | None:
    number = (line.get("about") or {}).get(_SUBJECTS[field])
    return int(number) if number is not None else None


def _lock_existing(field: str, keys: Iterable[int | None]) -> set[int | None]:
    """Those of the keys that have a row, locked against deletion until the transaction ends; and None."""
    model = CachedCompletion._meta.get_field(field).related_model
    assert isinstance(model, type) and issubclass(model, models.Model)
    rows = model._default_manager.filter(pk__in={key for key in keys if key is not None})
    return {None, *rows.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True)}
