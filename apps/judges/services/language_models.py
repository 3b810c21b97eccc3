"""Language models are added, changed, tried and removed; their answers are kept."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation.models import Comment
from apps.core.errors import Conflict, DomainError
from apps.core.http import outgoing
from apps.core.storage.encryption import encrypted
from apps.core.storage.model_folders import check_listed
from apps.judges.calls import call, completions_url
from apps.judges.models import ANSWER_TOKENS, LONGEST_URL, Answer, LanguageModel, Spending
from apps.trajectories.models import Trajectory
from workers.schema import bounded

MOST_MODELS = 20  # of a project
MOST_ANSWER_TOKENS = 131_072
MOST_CALLS = 100_000  # a minute
_BATCH = 1000
_TRIED_SECONDS = 60.0
_TRIED_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModelSpec:
    """What people say of one; see `LanguageModel`. A server has an address and a model, a folder neither."""

    name: str
    base_url: str = ""
    model: str = ""
    folder: str = ""
    answer_tokens: int = ANSWER_TOKENS
    prompt_price: Decimal | None = None
    completion_price: Decimal | None = None
    monthly_limit: Decimal | None = None
    calls_per_minute: int | None = None


@transaction.atomic
def add_language_model(
    *, project: Project, spec: LanguageModelSpec, key: str = "", by: User | None
) -> LanguageModel:
    """Raises DomainError for an address that may not be called, Conflict for a name that is taken."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if project.language_models.count() >= MOST_MODELS:
        raise Conflict(f"A project has up to {MOST_MODELS} language models; remove one first.")
    added = LanguageModel(project=project, created_by=by)
    _set(added, spec)
    added.key = encrypted(key.strip())
    added.save()
    _record(added, "language_model.added", by)
    return added


@transaction.atomic
def change_language_model(
    *, language_model: LanguageModel, spec: LanguageModelSpec, key: str = "", by: User | None
) -> LanguageModel:
    """key: empty to keep the one there, unless the address is another: a key goes nowhere it was not given for."""
    changed = LanguageModel.objects.select_for_update().get(pk=language_model.pk)
    was = changed.base_url
    _set(changed, spec)
    if key.strip():
        changed.key = encrypted(key.strip())
    elif changed.is_local:
        changed.key = ""
    elif changed.key and changed.base_url != was:
        raise DomainError("The address is another; enter its key.", pointer="/key")
    changed.save()
    _record(changed, "language_model.changed", by)
    return changed


@transaction.atomic
def remove_language_model(*, language_model: LanguageModel, by: User | None) -> None:
    """With all it answered; what was made of that stays."""
    record_audit(
        project=language_model.project, actor=by, verb="language_model.removed", target=language_model.name
    )
    language_model.delete()


def try_language_model(*, language_model: LanguageModel) -> str:
    """Ask it one thing; what it said. Raises DomainError with what went wrong."""
    messages = [{"role": "user", "content": "Answer with the word: ready"}]
    asked = {"messages": messages, "max_tokens": _TRIED_TOKENS}
    body = json.dumps(asked).encode()
    reply = call(language_model, body, purpose=Spending.Purpose.TRIAL, seconds=_TRIED_SECONDS)
    url = completions_url(language_model)
    try:
        document = bounded.loads(reply.body)
    except ValueError as error:
        raise DomainError(
            f"{url} answered {reply.status}, but not with JSON that is read: {error}."
        ) from None
    if reply.status != HTTPStatus.OK:
        raise DomainError(f"{url} answered {reply.status}: {_said_of_error(document)}")
    try:
        return str(document["choices"][0]["message"]["content"])[:300]
    except (LookupError, TypeError):
        raise DomainError(f"{url} answered, but not with a chat completion.") from None


def _said_of_error(document: Any) -> str:
    """The message of an error as servers of language models write it. Of anything else nothing is shown: it may be
    another service of the network."""
    found = document.get("error", document) if isinstance(document, dict) else None
    said = found.get("message", found.get("detail")) if isinstance(found, dict) else found
    return " ".join(said.split())[:300] if isinstance(said, str) else "no error as those servers write it."


def keep_answers(*, language_model: LanguageModel, lines: Iterable[dict[str, Any]]) -> int:
    """Lines of `answers.jsonl`, without those kept already or about what is gone; how many were looked at."""
    kept = list(lines)
    for start in range(0, len(kept), _BATCH):
        batch = kept[start : start + _BATCH]
        about = [[_number(line, what) for what in ("comment", "trajectory", "other")] for line in batch]
        with transaction.atomic():
            if not LanguageModel.objects.select_for_update(no_key=True).filter(pk=language_model.pk).exists():
                return start
            comments = _there(Comment, {comment for comment, _, _ in about}) | {None}
            runs = _there(Trajectory, {run for _, *both in about for run in both}) | {None}
            Answer.objects.bulk_create(
                (
                    Answer(
                        language_model=language_model,
                        key=line["key"],
                        answer=line["answer"],
                        comment_id=comment,
                        trajectory_id=run,
                        other_id=other,
                    )
                    for line, (comment, run, other) in zip(batch, about, strict=True)
                    if comment in comments and run in runs and other in runs
                ),
                ignore_conflicts=True,
            )
    return len(kept)


def _set(row: LanguageModel, spec: LanguageModelSpec) -> None:
    name, model = " ".join(spec.name.split()), spec.model.strip()
    base_url, folder = spec.base_url.strip().rstrip("/"), spec.folder.strip()
    if not 1 <= len(name) <= 100:
        raise DomainError("Its name has 1 to 100 characters.", pointer="/name")
    if bool(base_url) == bool(folder):
        raise DomainError(
            "Give the address of a server, or the name of a model folder; one of them.",
            pointer="/base_url",
        )
    if folder:
        check_listed(folder, pointer="/folder")
    else:
        _check_address(base_url)
        if not 1 <= len(model) <= 200:
            raise DomainError(
                "Say which model the server is asked for, in 1 to 200 characters.", pointer="/model"
            )
    if LanguageModel.objects.filter(project=row.project, name=name).exclude(pk=row.pk).exists():
        raise Conflict(f"There is a language model {name} already.", pointer="/name")
    if not 1 <= spec.answer_tokens <= MOST_ANSWER_TOKENS:
        raise DomainError(
            f"An answer has 1 to {MOST_ANSWER_TOKENS:,} tokens at most.", pointer="/answer_tokens"
        )
    if spec.calls_per_minute is not None and not 1 <= spec.calls_per_minute <= MOST_CALLS:
        raise DomainError(
            f"1 to {MOST_CALLS:,} calls a minute, or nothing for no limit.", pointer="/calls_per_minute"
        )
    for field in ("prompt_price", "completion_price", "monthly_limit"):
        if (getattr(spec, field) or 0) < 0:
            raise DomainError("Money is not below zero.", pointer=f"/{field}")
    if spec.monthly_limit is not None and (spec.prompt_price is None or spec.completion_price is None):
        raise DomainError(
            "A limit of money needs both prices; without them nobody knows what is spent.",
            pointer="/monthly_limit",
        )
    row.name, row.base_url, row.model, row.folder = name, base_url, "" if folder else model, folder
    for field in ("answer_tokens", "prompt_price", "completion_price", "monthly_limit", "calls_per_minute"):
        setattr(row, field, getattr(spec, field))
    row.next_call_at = None


def _check_address(base_url: str) -> None:
    if len(base_url) > LONGEST_URL:
        raise DomainError(f"An address has at most {LONGEST_URL} characters.", pointer="/base_url")
    try:
        outgoing.check_url(base_url)
    except DomainError as error:
        raise DomainError(error.message, pointer="/base_url") from error
    if "?" in base_url or "#" in base_url:
        message = "The address of a server has no ? or #: /chat/completions is added to it."
        raise DomainError(message, pointer="/base_url")


def _record(language_model: LanguageModel, verb: str, by: User | None) -> None:
    record_audit(
        project=language_model.project,
        actor=by,
        verb=verb,
        target=language_model.name,
        data={"url": language_model.base_url, "folder": language_model.folder},
    )


def _number(line: dict[str, Any], what: str) -> int | None:
    found = (line.get("about") or {}).get(what)
    return int(found) if found is not None else None


def _there(rows: type[Comment] | type[Trajectory], keys: set[int | None]) -> set[int]:
    """Locked against deletion until the transaction ends."""
    found = rows._default_manager.filter(pk__in=[key for key in keys if key is not None])
    return set(found.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
