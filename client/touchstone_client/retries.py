"""When to try again, and how long to wait before. Pure: the clients do the waiting."""

import random
from dataclasses import dataclass
from typing import Any

import httpx

RETRIED = frozenset({408, 429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Retries:
    """attempts: in all, the first included. The wait doubles from `first_seconds` up to `longest_seconds`, with
    jitter; the server's Retry-After counts instead where it is sent, up to the same bound.
    """

    attempts: int = 6
    first_seconds: float = 0.5
    longest_seconds: float = 30.0

    def wait(self, attempt: int, response: httpx.Response | None = None) -> float | None:
        """Seconds to wait after attempt number `attempt` (from 1) failed; None to give up."""
        if attempt >= self.attempts:
            return None
        asked = _retry_after(response)
        if asked is not None:
            return min(asked, self.longest_seconds)
        longest = min(self.first_seconds * 2.0 ** (attempt - 1), self.longest_seconds)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads callers, hides nothing


PATIENT = Retries()


def is_worth_retrying(response: httpx.Response) -> bool:
    """Overload and restarts pass; an endpoint that was switched off does not come back within seconds."""
    return response.status_code in RETRIED and not problem_of(response).get("switched_off", False)


def problem_of(response: httpx.Response) -> dict[str, Any]:
    """The reply's problem document (RFC 9457); empty where it has none, as a proxy's page."""
    try:
        problem = response.json()
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}


def _retry_after(response: httpx.Response | None) -> float | None:
    """Seconds; the form with a date is left to the doubling wait."""
    value = "" if response is None else response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
