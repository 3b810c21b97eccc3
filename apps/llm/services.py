"""LLM connections are created, updated and deleted."""

from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction

from apps.accounts.models import Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.http import outgoing
from apps.core.storage.encryption import encrypted
from apps.core.storage.model_folders import check_listed
from apps.llm.models import (
    ANSWER_TOKENS,
    LONGEST_URL,
    MAX_PICTURES,
    PICTURE_PIXELS,
    PICTURE_TOKENS,
    LLMConnection,
)
from workers.schema.pictures import LONGEST

MOST_CONNECTIONS = 20  # per project
MOST_ANSWER_TOKENS = 131_072
MOST_CALLS = 100_000  # per minute
MOST_PICTURES = 16  # of a call: as many as a request to the relay has room for
LEAST_PIXELS, MOST_PIXELS = 64, LONGEST
MOST_PICTURE_TOKENS = 100_000
_COPIED = (
    "answer_tokens",
    "prompt_price",
    "completion_price",
    "monthly_limit",
    "calls_per_minute",
    "reads_pictures",
    "max_pictures",
    "picture_pixels",
    "picture_tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMConnectionSpec:
    """The editable fields of an `LLMConnection`. A server has an address and a model, a folder neither."""

    name: str
    base_url: str = ""
    model: str = ""
    folder: str = ""
    answer_tokens: int = ANSWER_TOKENS
    prompt_price: Decimal | None = None
    completion_price: Decimal | None = None
    monthly_limit: Decimal | None = None
    calls_per_minute: int | None = None
    reads_pictures: bool = False
    max_pictures: int = MAX_PICTURES
    picture_pixels: int = PICTURE_PIXELS
    picture_tokens: int = PICTURE_TOKENS


@transaction.atomic
def create_llm_connection(
    *, project: Project, spec: LLMConnectionSpec, key: str = "", by: User | None
) -> LLMConnection:
    """Raises DomainError for an address that must not be called, Conflict for a name that is taken."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if project.llm_connections.count() >= MOST_CONNECTIONS:
        raise Conflict(
            f"A project can have at most {MOST_CONNECTIONS} LLM connections. Delete one, then try again."
        )
    llm_connection = LLMConnection(project=project, created_by=by)
    _apply_spec(llm_connection, spec)
    llm_connection.key = encrypted(key.strip())
    llm_connection.save()
    _record_change(llm_connection, "language_model.added", by)
    return llm_connection


@transaction.atomic
def update_llm_connection(
    *, llm_connection: LLMConnection, spec: LLMConnectionSpec, key: str = "", by: User | None
) -> LLMConnection:
    """key: empty to keep the stored one. A new address needs its own key: a key is sent only where it was given for."""
    locked = LLMConnection.objects.select_for_update().get(pk=llm_connection.pk)
    previous_url = locked.base_url
    _apply_spec(locked, spec)
    if key.strip():
        locked.key = encrypted(key.strip())
    elif locked.is_local:
        locked.key = ""
    elif locked.key and locked.base_url != previous_url:
        raise DomainError("The address has changed. Enter the key for the new address.", pointer="/key")
    locked.save()
    _record_change(locked, "language_model.changed", by)
    return locked


@transaction.atomic
def delete_llm_connection(*, llm_connection: LLMConnection, by: User | None) -> None:
    """Its cached completions are deleted too; scores and metrics made from them stay."""
    record_audit(
        project=llm_connection.project, actor=by, verb="language_model.removed", target=llm_connection.name
    )
    llm_connection.delete()


def _apply_spec(row: LLMConnection, spec: LLMConnectionSpec) -> None:
    name, model = " ".join(spec.name.split()), spec.model.strip()
    base_url, folder = spec.base_url.strip().rstrip("/"), spec.folder.strip()
    if not 1 <= len(name) <= 100:
        raise DomainError("The name must have 1 to 100 characters.", pointer="/name")
    if bool(base_url) == bool(folder):
        raise DomainError(
            "Enter either the address of a server or the name of a model folder.", pointer="/base_url"
        )
    if folder:
        check_listed(folder, pointer="/folder")
        if spec.reads_pictures:
            raise DomainError(
                "A model folder reads text only. Serve the model, by vLLM for instance, and enter the "
                "server's address.",
                pointer="/reads_pictures",
            )
    else:
        _check_address(base_url)
        if not 1 <= len(model) <= 200:
            raise DomainError(
                "Enter the name of the model on that server, 1 to 200 characters.", pointer="/model"
            )
    if LLMConnection.objects.filter(project=row.project, name=name).exclude(pk=row.pk).exists():
        raise Conflict(f"An LLM connection named {name} already exists.", pointer="/name")
    _check_limits(spec)
    row.name, row.base_url, row.model, row.folder = name, base_url, "" if folder else model, folder
    for field in _COPIED:
        setattr(row, field, getattr(spec, field))
    row.next_call_at = None


def _check_limits(spec: LLMConnectionSpec) -> None:
    if not 1 <= spec.answer_tokens <= MOST_ANSWER_TOKENS:
        raise DomainError(
            f"The maximum of output tokens must be from 1 to {MOST_ANSWER_TOKENS:,}.",
            pointer="/answer_tokens",
        )
    if spec.calls_per_minute is not None and not 1 <= spec.calls_per_minute <= MOST_CALLS:
        raise DomainError(
            f"Calls per minute must be from 1 to {MOST_CALLS:,}; leave it empty for no limit.",
            pointer="/calls_per_minute",
        )
    for field, low, high, what in (
        ("max_pictures", 1, MOST_PICTURES, "Pictures per call"),
        ("picture_pixels", LEAST_PIXELS, MOST_PIXELS, "The longer side of a picture"),
        ("picture_tokens", 1, MOST_PICTURE_TOKENS, "Tokens per picture"),
    ):
        if not low <= getattr(spec, field) <= high:
            raise DomainError(f"{what} must be from {low:,} to {high:,}.", pointer=f"/{field}")
    for field in ("prompt_price", "completion_price", "monthly_limit"):
        if (getattr(spec, field) or 0) < 0:
            raise DomainError("A price or budget must be 0 or more.", pointer=f"/{field}")
    if spec.monthly_limit is not None and (spec.prompt_price is None or spec.completion_price is None):
        raise DomainError(
            "A monthly budget needs both prices, so that spending can be computed. Enter both, or leave the budget "
            "empty.",
            pointer="/monthly_limit",
        )


def _check_address(base_url: str) -> None:
    if len(base_url) > LONGEST_URL:
        raise DomainError(f"An address can have at most {LONGEST_URL} characters.", pointer="/base_url")
    try:
        outgoing.check_url(base_url)
    except DomainError as error:
        raise DomainError(error.message, pointer="/base_url") from error
    if "?" in base_url or "#" in base_url:
        message = "The address must not contain ? or #, because /chat/completions is appended to it."
        raise DomainError(message, pointer="/base_url")


def _record_change(llm_connection: LLMConnection, verb: str, by: User | None) -> None:
    record_audit(
        project=llm_connection.project,
        actor=by,
        verb=verb,
        target=llm_connection.name,
        data={"url": llm_connection.base_url, "folder": llm_connection.folder},
    )
