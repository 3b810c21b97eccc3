"""A judge's failure as an error of the request: whose fault it is, and whether a retry helps."""

import math
from contextlib import suppress
from typing import Any

from django.db import Error

from apps.core.errors import DomainError
from apps.llm.relay import REFUSED
from apps.rewards.serving.problems import Problem
from workers.engine import Overloaded
from workers.errors import RewardError

SOON = 5  # seconds
_BUSY, _NO_ANSWER = 429, 502
_QUESTION = (400, 413, 422)  # a server that refuses what it is asked
_OWNERS = (401, 402, 403, 404)  # that an owner has to fix


def judge_error(error: DomainError | RewardError | Error, *, judge: str, llm_connection: str) -> Exception:
    """Overloaded where it is rate-limited; Problem 502 for an invalid reply, else 503. There is a Retry-After where a
    retry may help."""
    if isinstance(error, Error):
        return _problem(503, f"The judge {judge} cannot be called while the database is unreachable.", SOON)
    if isinstance(error, DomainError):
        return _problem(503, f"The judge {judge} cannot be called: {error.message}")
    import openai

    from workers.llm.completions import NoAnswer

    who = f"The LLM connection {llm_connection} of the judge {judge}"
    cause = error.__cause__
    if isinstance(cause, openai.APIStatusError):
        return _status_error(cause, error.message, who)
    if isinstance(cause, openai.APIConnectionError):
        return _problem(503, f"{who} does not respond: {error.message}", SOON)
    if isinstance(error, NoAnswer):
        return _problem(502, f"The judge {judge} gave an invalid reply: {error.message}", SOON)
    return _problem(503, f"{who} cannot be called: {error.message}")


def _status_error(cause: Any, message: str, who: str) -> Exception:
    """cause: openai's error: a reply of the relay, or one that it passed on."""
    status, headers = cause.status_code, cause.response.headers
    is_ours = REFUSED in headers
    if is_ours and isinstance(cause.body, dict):
        message = str(cause.body.get("message", message))
    if status == _BUSY:
        seconds = _seconds(headers.get("retry-after"))
        return Overloaded(f"{who} is busy: {message} Try again in {seconds} s.", retry_after=seconds)
    if not is_ours and status in _QUESTION:
        return _problem(502, f"{who} rejected the request: {message}", SOON)
    if (is_ours and status != _NO_ANSWER) or status in _OWNERS:
        return _problem(503, f"{who} cannot be called: {message}")
    return _problem(503, f"{who} does not respond: {message}", SOON)


def _seconds(header: str | None) -> int:
    with suppress(ValueError, TypeError, OverflowError):
        return max(math.ceil(float(header or "")), 1)
    return SOON


def _problem(status: int, message: str, retry_after: int | None = None) -> Problem:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Problem(f"{message.rstrip('.')}. Without it there is no reward.", status=status, headers=headers)
