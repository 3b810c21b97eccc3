"""Why a judge gave no answer, as an error of the request: whose fault it is, and whether trying again helps."""

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
_OWNERS = (401, 402, 403, 404)  # what an owner has to mend


def refusal(error: DomainError | RewardError | Error, *, judge: str, llm_connection: str) -> Exception:
    """Overloaded where its turn comes later; Problem 502 for what is no answer, else 503. There is a Retry-After where
    it is a matter of time."""
    if isinstance(error, Error):
        return _problem(503, f"The judge {judge} cannot be asked while the database is away.", SOON)
    if isinstance(error, DomainError):
        return _problem(503, f"The judge {judge} cannot be asked: {error.message}")
    import openai

    from workers.llm.completions import NoAnswer

    who = f"The language model {llm_connection} of the judge {judge}"
    cause = error.__cause__
    if isinstance(cause, openai.APIStatusError):
        return _of_status(cause, error.message, who)
    if isinstance(cause, openai.APIConnectionError):
        return _problem(503, f"{who} does not answer: {error.message}", SOON)
    if isinstance(error, NoAnswer):
        return _problem(502, f"The judge {judge} gave no answer that can be used: {error.message}", SOON)
    return _problem(503, f"{who} cannot be asked: {error.message}")


def _of_status(cause: Any, said: str, who: str) -> Exception:
    """cause: openai's error, of what the relay said, or passed on."""
    status, headers = cause.status_code, cause.response.headers
    is_ours = REFUSED in headers
    if is_ours and isinstance(cause.body, dict):
        said = str(cause.body.get("message", said))
    if status == _BUSY:
        seconds = _seconds(headers.get("retry-after"))
        return Overloaded(f"{who} is busy: {said} Try again in {seconds} s.", retry_after=seconds)
    if not is_ours and status in _QUESTION:
        return _problem(502, f"{who} did not take the question: {said}", SOON)
    if (is_ours and status != _NO_ANSWER) or status in _OWNERS:
        return _problem(503, f"{who} cannot be asked: {said}")
    return _problem(503, f"{who} does not answer: {said}", SOON)


def _seconds(header: str | None) -> int:
    with suppress(ValueError, TypeError, OverflowError):
        return max(math.ceil(float(header or "")), 1)
    return SOON


def _problem(status: int, message: str, retry_after: int | None = None) -> Problem:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Problem(f"{message.rstrip('.')}. Without it there is no reward.", status=status, headers=headers)
