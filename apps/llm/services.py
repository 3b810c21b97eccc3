"""Language models are added, changed, tried and removed; their answers are kept."""

import json
from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.http import outgoing
from apps.core.storage.encryption import encrypted
from apps.core.storage.model_folders import check_listed
from apps.llm.calls import call, completions_url
from apps.llm.models import (
    ANSWER_TOKENS,
    LONGEST_URL,
    LLMConnection,
    SpendingPurpose,
)
from workers.schema import bounded

MOST_MODELS = 20  # of a project
MOST_ANSWER_TOKENS = 131_072
MOST_CALLS = 100_000  # a minute
_TRIED_SECONDS = 60.0
_TRIED_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMConnectionSpec:
    """What people say of one; see `LLMConnection`. A server has an address and a model, a folder neither."""

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
def create_llm_connection(
    *, project: Project, spec: LLMConnectionSpec, key: str = "", by: User | None
) -> LLMConnection:
    """Raises DomainError for an address that may not be called, Conflict for a name that is taken."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if project.llm_connections.count() >= MOST_MODELS:
        raise Conflict(f"A project has up to {MOST_MODELS} language models; remove one first.")
    added = LLMConnection(project=project, created_by=by)
    _set(added, spec)
    added.key = encrypted(key.strip())
    added.save()
    _record(added, "llm_connection.added", by)
    return added


@transaction.atomic
def update_llm_connection(
    *, llm_connection: LLMConnection, spec: LLMConnectionSpec, key: str = "", by: User | None
) -> LLMConnection:
    """key: empty to keep the one there, unless the address is another: a key goes nowhere it was not given for."""
    changed = LLMConnection.objects.select_for_update().get(pk=llm_connection.pk)
    was = changed.base_url
    _set(changed, spec)
    if key.strip():
        changed.key = encrypted(key.strip())
    elif changed.is_local:
        changed.key = ""
    elif changed.key and changed.base_url != was:
        raise DomainError("The address is another; enter its key.", pointer="/key")
    changed.save()
    _record(changed, "llm_connection.changed", by)
    return changed


@transaction.atomic
def delete_llm_connection(*, llm_connection: LLMConnection, by: User | None) -> None:
    """With all it answered; what was made of that stays."""
    record_audit(
        project=llm_connection.project, actor=by, verb="llm_connection.removed", target=llm_connection.name
    )
    llm_connection.delete()


def check_llm_connection(*, llm_connection: LLMConnection) -> str:
    """Ask it one thing; what it said. Raises DomainError with what went wrong."""
    messages = [{"role": "user", "content": "CachedCompletion with the word: ready"}]
    asked = {"messages": messages, "max_tokens": _TRIED_TOKENS}
    body = json.dumps(asked).encode()
    reply = call(llm_connection, body, purpose=SpendingPurpose.TEST, seconds=_TRIED_SECONDS)
    url = completions_url(llm_connection)
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


def _set(row: LLMConnection, spec: LLMConnectionSpec) -> None:
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
    if LLMConnection.objects.filter(project=row.project, name=name).exclude(pk=row.pk).exists():
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


def _record(llm_connection: LLMConnection, verb: str, by: User | None) -> None:
    record_audit(
        project=llm_connection.project,
        actor=by,
        verb=verb,
        target=llm_connection.name,
        data={"url": llm_connection.base_url, "folder": llm_connection.folder},
    )
