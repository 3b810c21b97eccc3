"""Calls to language models, within their limits and with their cost recorded.

The most that a call can cost is recorded before the call, and replaced by the cost of the tokens that the server
reports once the reply is there. So concurrent calls never exceed the monthly budget; a call whose worker dies, or
whose reply never arrives, keeps its maximum cost.
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

SECONDS = 180.0  # per call
MOST_WAITED = 60.0  # seconds for the rate limit; a call that would wait longer is refused
_MOST_REPLY_BYTES = 8_000_000
REPLY_BYTES = 1_000_000  # of any reply, and for each requested token:
_TOKEN_BYTES = 64  # in JSON escapes, and the reasoning before it
_LOGPROB_BYTES = 2_500  # with twenty alternatives and their log-probabilities
_MILLION = Decimal(1_000_000)
_TEMPLATE_TOKENS = 200  # around the messages
_LENGTH_FIELDS = ("max_completion_tokens", "max_tokens")


class BudgetExceeded(DomainError):
    """The call could exceed the monthly budget."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=HTTPStatus.PAYMENT_REQUIRED)


class RateLimited(DomainError):
    """The rate limit is reached. seconds: until the call could be made."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message, status=HTTPStatus.TOO_MANY_REQUESTS)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class _Reservation:
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
    """The server's reply to a chat completion, whatever its status. body: JSON. waits: seconds for the rate limit.

    The connection is read again, so that its present key and limits apply. Raises BudgetExceeded, RateLimited, and
    DomainError for an invalid body, a connection that was deleted or is a folder, an address that must not be called,
    and a server that does not answer (status 502).
    """
    llm_connection = _reload(llm_connection)
    if llm_connection.is_local:
        raise DomainError(f"{llm_connection.name} is a model folder, which only GPU workers can use.")
    request = _limit_request(body, llm_connection)
    key = decrypted_key(llm_connection)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    reservation = _reserve(llm_connection, request, purpose, waits)
    if not connection.in_atomic_block:
        connection.close()  # so that others can use it while this waits
    time.sleep(max((reservation.at - timezone.now()).total_seconds(), 0.0))
    url = completions_url(llm_connection)
    try:
        reply = _send(url, request, headers, seconds)
    except DomainError as error:
        was_received = isinstance(error, NoReply) and error.reached
        _settle(reservation, reservation.cost if was_received else Decimal(0))
        raise DomainError(f"{url} did not answer: {error.message}", status=502) from error
    if reply.status != HTTPStatus.OK:
        _settle(reservation, Decimal(0))
    else:
        prompt, completion = reported_tokens(reply.body)
        known = prompt + completion > 0
        cost = _cost(llm_connection, prompt, completion) if known else reservation.cost
        _settle(reservation, cost, prompt, completion, failed=False)
    return reply


def decrypted_key(llm_connection: LLMConnection) -> str:
    """Raises DomainError where the key cannot be decrypted."""
    try:
        return decrypted(llm_connection.key)
    except DomainError as error:
        raise DomainError(f"{llm_connection.name} cannot be used. {error.message}") from error


def record_local_usage(llm_connection: LLMConnection, usage: Mapping[str, Any], purpose: str) -> None:
    """Record the usage of a model folder, which has no price. usage: of `workers.llm.client.Usage`."""
    spending = _todays_spending(llm_connection, purpose)
    Spending.objects.filter(pk=spending).update(
        calls=F("calls") + int(usage["calls"]),
        prompt_tokens=F("prompt_tokens") + int(usage["prompt_tokens"]),
        completion_tokens=F("completion_tokens") + int(usage["completion_tokens"]),
    )


def _spent_this_month(llm_connection: LLMConnection) -> Decimal:
    """With the maximum cost of calls that are running. Months are in UTC."""
    first = timezone.now().date().replace(day=1)
    rows = Spending.objects.filter(llm_connection=llm_connection, day__gte=first)
    return rows.aggregate(sum=Sum("cost"))["sum"] or Decimal(0)


def _send(url: str, request: dict[str, Any], headers: dict[str, str], seconds: float) -> Reply:
    limits = CallLimits(seconds=seconds, body=_longest(request))
    return outgoing.request("POST", url, body=json.dumps(request).encode(), headers=headers, limits=limits)


def _longest(request: dict[str, Any]) -> int:
    """The most bytes that a reply to this request can have."""
    tokens = next((request[name] for name in _LENGTH_FIELDS if name in request), 0)
    each = _LOGPROB_BYTES if request.get("logprobs") else _TOKEN_BYTES
    return min(REPLY_BYTES + tokens * each, _MOST_REPLY_BYTES)


def _limit_request(body: bytes, llm_connection: LLMConnection) -> dict[str, Any]:
    """The request with the connection's model and its maximum of output tokens."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        raise DomainError("The request must be a JSON object with messages.")
    request = {name: value for name, value in request.items() if name not in ("n", "stream", "best_of")}
    name = next((field for field in _LENGTH_FIELDS if field in request), _LENGTH_FIELDS[1])
    limit, requested = llm_connection.answer_tokens, request.get(name)
    length = min(requested, limit) if isinstance(requested, int) and requested > 0 else limit
    for other in _LENGTH_FIELDS:
        request.pop(other, None)
    return request | {"model": llm_connection.model, name: length}


def _reload(llm_connection: LLMConnection, *, locked: bool = False) -> LLMConnection:
    rows = LLMConnection.objects.select_for_update(no_key=True) if locked else LLMConnection.objects
    row = rows.filter(pk=llm_connection.pk).first()
    if row is None:
        raise DomainError(f"The LLM connection {llm_connection.name} was deleted.", status=404)
    return row


@transaction.atomic
def _reserve(
    llm_connection: LLMConnection, request: dict[str, Any], purpose: str, waits: float = MOST_WAITED
) -> _Reservation:
    """Reserve a place within the rate limit, and the maximum cost."""
    row = _reload(llm_connection, locked=True)
    now = timezone.now()
    length = next(request[name] for name in _LENGTH_FIELDS if name in request)
    cost = _cost(row, _most_prompt_tokens(row, request) + _TEMPLATE_TOKENS, length)
    if row.monthly_limit is not None:
        spent = _spent_this_month(row)
        if spent + cost > row.monthly_limit:
            raise BudgetExceeded(
                f"The monthly budget of {row.name} is {row.monthly_limit}; {spent:.2f} of it is spent, and this call "
                f"can cost up to {cost:.4f}. Ask an owner to raise it on the page LLM connections, or wait for next "
                "month."
            )
    at = now
    if row.calls_per_minute:
        at = max(now, row.next_call_at or now)
        wait = (at - now).total_seconds()
        if wait > waits:
            raise RateLimited(
                f"{row.name} allows {row.calls_per_minute} calls per minute. Try again later.", wait
            )
        row.next_call_at = at + timedelta(seconds=60 / row.calls_per_minute)
        row.save(update_fields=["next_call_at"])
    spending = _todays_spending(row, purpose)
    rows = Spending.objects.filter(pk=spending)
    rows.update(cost=F("cost") + cost, calls=F("calls") + 1, failed=F("failed") + 1)
    return _Reservation(spending, cost, at)


def _most_prompt_tokens(llm_connection: LLMConnection, request: dict[str, Any]) -> int:
    """A token has at least one byte, and a picture counts as the connection says, not by the bytes of its file."""
    texts: list[Any] = [request.get("response_format")]
    pictures = 0
    for message in request["messages"]:
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list):
            texts.append(message)
            continue
        parts = [part for part in content if not (isinstance(part, dict) and part.get("type") == "image_url")]
        pictures += len(content) - len(parts)
        texts.append(message | {"content": parts})
    return len(json.dumps(texts, ensure_ascii=False).encode()) + pictures * llm_connection.picture_tokens


def _todays_spending(llm_connection: LLMConnection, purpose: str) -> int:
    """The key of today's row."""
    row, _ = Spending.objects.get_or_create(
        llm_connection=llm_connection,
        day=timezone.now().date(),
        purpose=purpose,
        defaults={"project_id": llm_connection.project_id, "name": llm_connection.name},
    )
    return row.pk


def _settle(
    reservation: _Reservation, cost: Decimal, prompt: int = 0, completion: int = 0, *, failed: bool = True
) -> None:
    Spending.objects.filter(pk=reservation.spending).update(
        cost=F("cost") + cost - reservation.cost,
        failed=F("failed") - (0 if failed else 1),
        prompt_tokens=F("prompt_tokens") + prompt,
        completion_tokens=F("completion_tokens") + completion,
    )


def _cost(llm_connection: LLMConnection, prompt: int, completion: int) -> Decimal:
    prompt_price, completion_price = llm_connection.prompt_price or 0, llm_connection.completion_price or 0
    return (prompt * prompt_price + completion * completion_price) / _MILLION


def reported_tokens(body: bytes) -> tuple[int, int]:
    """Input and output tokens as the server reports them; 0 where it does not."""
    try:
        usage = bounded.loads(body)["usage"]
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return 0, 0
    prompt, completion = (count if isinstance(count, int) and 0 <= count < 2**31 else 0 for count in counts)
    return prompt, completion
