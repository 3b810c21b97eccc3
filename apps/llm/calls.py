"""Calls to language models: within their limits, and with what they cost written down.

What a call can cost at most is written down before it is made, and corrected by the tokens that the server counted once
the answer is there. So the limit of a month is never passed, however many ask at once; a call whose worker dies, or
whose answer never comes, stays at its most.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Sum
from django.utils import timezone

from apps.core.errors import DomainError
from apps.core.http import outgoing
from apps.core.http.outgoing import CallLimits, NoReply, Reply
from apps.core.storage.encryption import decrypted
from apps.llm.models import LLMConnection, Spending
from workers.schema import bounded

SECONDS = 180.0  # of one call
MOST_WAITED = 60.0  # seconds for a turn; who would wait longer is sent away
_MOST_ANSWERED = 8_000_000  # bytes
_ANSWERED = 1_000_000  # bytes of any reply, and more by how long an answer was asked for:
_TOKEN_BYTES = 64  # as JSON writes one that is no Latin letter, and what was thought before it
_TOLD_BYTES = 2_500  # with twenty alternatives and their probabilities
_MILLION = Decimal(1_000_000)
_OVERHEAD = 200  # tokens of a template around the messages
_LENGTHS = ("max_completion_tokens", "max_tokens")


class OverLimit(DomainError):
    """The month's money is spent, or would be."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=HTTPStatus.PAYMENT_REQUIRED)


class TooMany(DomainError):
    """Its turn comes later. seconds: until then."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message, status=HTTPStatus.TOO_MANY_REQUESTS)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class _Reserved:
    spending: int
    cost: Decimal
    at: datetime


def completions_url(llm_connection: LLMConnection) -> str:
    return f"{llm_connection.base_url.rstrip('/')}/chat/completions"


def call(
    llm_connection: LLMConnection,
    body: bytes,
    *,
    purpose: str,
    seconds: float = SECONDS,
    waits: float = MOST_WAITED,
) -> Reply:
    """The server's own answer to a chat completion, whatever its status. body: JSON. waits: seconds for its turn.

    The model is asked as it is now, by its present key, whatever it was when `llm_connection` was read. Raises
    OverLimit, TooMany, and DomainError for a body that is none, a model that is gone or is in a folder, an address that
    may not be called, and a server that does not answer (status 502).
    """
    llm_connection = _as_it_is(llm_connection)
    if llm_connection.is_local:
        raise DomainError(f"{llm_connection.name} is in a folder, where only GPU workers can ask it.")
    asked = _bounded(body, llm_connection)
    key = decrypted_key(llm_connection)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    reserved = _reserve(llm_connection, asked, purpose, waits)
    if not connection.in_atomic_block:
        connection.close()  # others may have it while this waits
    time.sleep(max((reserved.at - timezone.now()).total_seconds(), 0.0))
    url = completions_url(llm_connection)
    try:
        reply = _send(url, asked, headers, seconds)
    except DomainError as error:
        was_asked = isinstance(error, NoReply) and error.reached
        _settle(reserved, reserved.cost if was_asked else Decimal(0))
        raise DomainError(f"{url} did not answer: {error.message}", status=502) from error
    if reply.status != HTTPStatus.OK:
        _settle(reserved, Decimal(0))
    else:
        prompt, completion = _counted(reply.body)
        known = prompt + completion > 0
        cost = _cost(llm_connection, prompt, completion) if known else reserved.cost
        _settle(reserved, cost, prompt, completion, failed=False)
    return reply


def decrypted_key(llm_connection: LLMConnection) -> str:
    """Raises DomainError where it cannot be read any more."""
    try:
        return decrypted(llm_connection.key)
    except DomainError as error:
        raise DomainError(f"{llm_connection.name} cannot be asked. {error.message}") from error


def record_local_usage(llm_connection: LLMConnection, usage: Mapping[str, Any], purpose: str) -> None:
    """Write down what a model in a folder was asked: it has no price. usage: of `workers.llm.client.Usage`."""
    spending = _spending(llm_connection, purpose)
    Spending.objects.filter(pk=spending).update(
        calls=F("calls") + int(usage["calls"]),
        prompt_tokens=F("prompt_tokens") + int(usage["prompt_tokens"]),
        completion_tokens=F("completion_tokens") + int(usage["completion_tokens"]),
    )


def _spent_this_month(llm_connection: LLMConnection) -> Decimal:
    """With what calls under way can cost at most. The month is that of UTC."""
    first = timezone.now().date().replace(day=1)
    rows = Spending.objects.filter(llm_connection=llm_connection, day__gte=first)
    return rows.aggregate(sum=Sum("cost"))["sum"] or Decimal(0)


def _send(url: str, asked: dict[str, Any], headers: dict[str, str], seconds: float) -> Reply:
    limits = CallLimits(seconds=seconds, body=_longest(asked))
    return outgoing.request("POST", url, body=json.dumps(asked).encode(), headers=headers, limits=limits)


def _longest(asked: dict[str, Any]) -> int:
    """Bytes of a reply that fits what was asked for."""
    tokens = next((asked[name] for name in _LENGTHS if name in asked), 0)
    each = _TOLD_BYTES if asked.get("logprobs") else _TOKEN_BYTES
    return min(_ANSWERED + tokens * each, _MOST_ANSWERED)


def _bounded(body: bytes, llm_connection: LLMConnection) -> dict[str, Any]:
    """The body with an end to the answer, for the model it is for."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
        raise DomainError("A chat completion is asked for by a JSON object with messages.")
    asked = {name: value for name, value in asked.items() if name not in ("n", "stream", "best_of")}
    name = next((one for one in _LENGTHS if one in asked), _LENGTHS[1])
    most, given = llm_connection.answer_tokens, asked.get(name)
    length = min(given, most) if isinstance(given, int) and given > 0 else most
    for other in _LENGTHS:
        asked.pop(other, None)
    return asked | {"model": llm_connection.model, name: length}


def _as_it_is(llm_connection: LLMConnection, *, locked: bool = False) -> LLMConnection:
    rows = LLMConnection.objects.select_for_update(no_key=True) if locked else LLMConnection.objects
    row = rows.filter(pk=llm_connection.pk).first()
    if row is None:
        raise DomainError(f"The language model {llm_connection.name} was removed.", status=404)
    return row


@transaction.atomic
def _reserve(
    llm_connection: LLMConnection, asked: dict[str, Any], purpose: str, waits: float = MOST_WAITED
) -> _Reserved:
    """A turn, and what it can cost at most: no token is shorter than a byte."""
    row = _as_it_is(llm_connection, locked=True)
    now = timezone.now()
    said = len(
        json.dumps([asked.get(name) for name in ("messages", "response_format")], ensure_ascii=False).encode()
    )
    length = next(asked[name] for name in _LENGTHS if name in asked)
    cost = _cost(row, said + _OVERHEAD, length)
    if row.monthly_limit is not None:
        spent = _spent_this_month(row)
        if spent + cost > row.monthly_limit:
            raise OverLimit(
                f"The limit of {row.name} is {row.monthly_limit} a month; {spent:.2f} of it is spent, and this call "
                f"can cost up to {cost:.4f} more. Have an owner raise it on the page Language models, or wait for the "
                "next month."
            )
    at = now
    if row.calls_per_minute:
        at = max(now, row.next_call_at or now)
        wait = (at - now).total_seconds()
        if wait > waits:
            raise TooMany(f"{row.name} is asked {row.calls_per_minute} times a minute at most.", wait)
        row.next_call_at = at + timedelta(seconds=60 / row.calls_per_minute)
        row.save(update_fields=["next_call_at"])
    spending = _spending(row, purpose)
    rows = Spending.objects.filter(pk=spending)
    rows.update(cost=F("cost") + cost, calls=F("calls") + 1, failed=F("failed") + 1)
    return _Reserved(spending, cost, at)


def _spending(llm_connection: LLMConnection, purpose: str) -> int:
    """Today's row."""
    row, _ = Spending.objects.get_or_create(
        llm_connection=llm_connection,
        day=timezone.now().date(),
        purpose=purpose,
        defaults={"project_id": llm_connection.project_id, "name": llm_connection.name},
    )
    return row.pk


def _settle(
    reserved: _Reserved, cost: Decimal, prompt: int = 0, completion: int = 0, *, failed: bool = True
) -> None:
    Spending.objects.filter(pk=reserved.spending).update(
        cost=F("cost") + cost - reserved.cost,
        failed=F("failed") - (0 if failed else 1),
        prompt_tokens=F("prompt_tokens") + prompt,
        completion_tokens=F("completion_tokens") + completion,
    )


def _cost(llm_connection: LLMConnection, prompt: int, completion: int) -> Decimal:
    prompt_price, completion_price = llm_connection.prompt_price or 0, llm_connection.completion_price or 0
    return (prompt * prompt_price + completion * completion_price) / _MILLION


def _counted(body: bytes) -> tuple[int, int]:
    """Tokens as the server counted them; 0 where it did not."""
    try:
        usage = bounded.loads(body)["usage"]
        found = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0, 0
    prompt, completion = (one if isinstance(one, int) and 0 <= one < 2**31 else 0 for one in found)
    return prompt, completion
