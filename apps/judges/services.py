"""Language models are added, changed, tried and removed; their answers are kept."""

import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import httpx
from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.annotation.kinds.comment import Comment
from apps.core import outgoing
from apps.core.encryption import decrypted, encrypted
from apps.core.errors import Conflict, DomainError
from apps.judges.models import LONGEST_URL, Answer, LanguageModel
from apps.trajectories.models import Trajectory

MOST_MODELS = 20  # of a project
_BATCH = 1000
_TRIED_SECONDS = 60.0
_READ = 100_000  # bytes of a trial's answer


@transaction.atomic
def add_language_model(
    *, project: Project, name: str, base_url: str, model: str, key: str, by: User | None
) -> LanguageModel:
    """Raises DomainError for an address that may not be called, Conflict for a name that is taken."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if project.language_models.count() >= MOST_MODELS:
        raise Conflict(f"A project has up to {MOST_MODELS} language models; remove one first.")
    added = LanguageModel(project=project, created_by=by)
    _set(added, name, base_url, model)
    added.key = encrypted(key.strip())
    added.save()
    record_audit(
        project=project,
        actor=by,
        verb="language_model.added",
        target=added.name,
        data={"url": added.base_url},
    )
    return added


@transaction.atomic
def change_language_model(
    *, language_model: LanguageModel, name: str, base_url: str, model: str, key: str, by: User | None
) -> LanguageModel:
    """key: empty to keep the one there, unless the address is another: a key goes nowhere it was not given for."""
    changed = LanguageModel.objects.select_for_update().get(pk=language_model.pk)
    was = changed.base_url
    _set(changed, name, base_url, model)
    if key.strip():
        changed.key = encrypted(key.strip())
    elif changed.key and changed.base_url != was:
        raise DomainError("The address is another; enter its key.", pointer="/key")
    changed.save()
    record_audit(
        project=changed.project,
        actor=by,
        verb="language_model.changed",
        target=changed.name,
        data={"url": changed.base_url},
    )
    return changed


@transaction.atomic
def remove_language_model(*, language_model: LanguageModel, by: User | None) -> None:
    """With all it answered; what was made of that stays."""
    record_audit(
        project=language_model.project, actor=by, verb="language_model.removed", target=language_model.name
    )
    language_model.delete()


def key_of(language_model: LanguageModel) -> str:
    """The secret itself; for calls only. Raises DomainError."""
    return decrypted(language_model.key)


def try_language_model(*, language_model: LanguageModel) -> str:
    """Ask it one thing; what it said. Raises DomainError with what went wrong."""
    body = {
        "model": language_model.model,
        "messages": [{"role": "user", "content": "Answer with the word: ready"}],
    }
    headers = {"Authorization": f"Bearer {key_of(language_model)}"} if language_model.key else {}
    url = completions_url(language_model)
    try:
        with (
            outgoing.client(seconds=_TRIED_SECONDS) as http,
            http.stream("POST", url, json=body, headers=headers) as reply,
        ):
            read = b""
            for part in reply.iter_bytes():
                read += part
                if len(read) > _READ:
                    break
    except httpx.HTTPError as error:
        raise DomainError(f"{url} did not answer: {type(error).__name__}.") from error
    told = " ".join(read[:300].decode("utf-8", "replace").split())
    if reply.status_code != HTTPStatus.OK:
        raise DomainError(f"{url} answered {reply.status_code}: {told}")
    try:
        return str(json.loads(read)["choices"][0]["message"]["content"])[:300]
    except (ValueError, LookupError, TypeError):
        raise DomainError(f"{url} answered, but not with a chat completion: {told}") from None


def completions_url(language_model: LanguageModel) -> str:
    return f"{language_model.base_url.rstrip('/')}/chat/completions"


def keep_answers(*, language_model: LanguageModel, lines: Iterable[dict[str, Any]]) -> int:
    """Lines of `answers.jsonl`, without those kept already or about what is gone; how many were looked at."""
    kept = list(lines)
    for start in range(0, len(kept), _BATCH):
        batch = kept[start : start + _BATCH]
        about = [(_number(line, "comment"), _number(line, "trajectory")) for line in batch]
        with transaction.atomic():
            if not LanguageModel.objects.select_for_update(no_key=True).filter(pk=language_model.pk).exists():
                return start
            comments = _there(Comment, {comment for comment, _ in about})
            runs = _there(Trajectory, {run for _, run in about})
            Answer.objects.bulk_create(
                (
                    Answer(
                        language_model=language_model,
                        key=line["key"],
                        answer=line["answer"],
                        comment_id=comment,
                        trajectory_id=run,
                    )
                    for line, (comment, run) in zip(batch, about, strict=True)
                    if (comment is None or comment in comments) and (run is None or run in runs)
                ),
                ignore_conflicts=True,
            )
    return len(kept)


def _set(row: LanguageModel, name: str, base_url: str, model: str) -> None:
    name, base_url, model = " ".join(name.split()), base_url.strip().rstrip("/"), model.strip()
    if not 1 <= len(name) <= 100:
        raise DomainError("Its name has 1 to 100 characters.", pointer="/name")
    if not 1 <= len(model) <= 200:
        raise DomainError(
            "Say which model the server is asked for, in 1 to 200 characters.", pointer="/model"
        )
    if len(base_url) > LONGEST_URL:
        raise DomainError(f"An address has at most {LONGEST_URL} characters.", pointer="/base_url")
    try:
        outgoing.check_url(base_url)
    except DomainError as error:
        raise DomainError(error.message, pointer="/base_url") from error
    if LanguageModel.objects.filter(project=row.project, name=name).exclude(pk=row.pk).exists():
        raise Conflict(f"There is a language model {name} already.", pointer="/name")
    row.name, row.base_url, row.model = name, base_url, model


def _number(line: dict[str, Any], what: str) -> int | None:
    found = (line.get("about") or {}).get(what)
    return int(found) if found is not None else None


def _there(rows: type[Comment] | type[Trajectory], keys: set[int | None]) -> set[int]:
    """Locked against deletion until the transaction ends."""
    found = rows._default_manager.filter(pk__in=[key for key in keys if key is not None])
    return set(found.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
