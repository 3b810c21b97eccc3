"""Reading a request's body, up to a limit and for so long."""

import asyncio
from collections.abc import Callable

from django.conf import settings
from starlette.requests import Request

from apps.rewards.serving.problems import Problem

MOST_SECONDS = 60.0  # for a whole body: a sender of a byte at a time holds nothing for longer


async def read_body(request: Request, take: Callable[[int], None] = lambda count: None) -> bytes:
    """Raises Problem 413, with the limit, as soon as it is passed; 408 where the body does not come.

    take: told of the bytes as they come; what it raises ends the reading.
    """
    try:
        async with asyncio.timeout(MOST_SECONDS):
            return await _read(request, take)
    except TimeoutError:
        raise Problem(
            f"The body did not arrive within {MOST_SECONDS:g} s; send it again, or less at a time.",
            status=408,
            headers={"Connection": "close"},
        ) from None


async def _read(request: Request, take: Callable[[int], None]) -> bytes:
    limit: int = settings.REWARDS_MAX_BODY_BYTES
    declared = request.headers.get("Content-Length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise _too_large(limit)
    body = bytearray()
    async for chunk in request.stream():
        take(len(chunk))
        body += chunk
        if len(body) > limit:
            raise _too_large(limit)
    return bytes(body)


def _too_large(limit: int) -> Problem:
    return Problem(
        f"The request body is over the limit of {limit} bytes; send fewer items at a time, or raise "
        "TOUCHSTONE_REWARDS_MAX_MB.",
        status=413,
        limit=limit,
    )
