"""Reading a request's body, up to a limit."""

from django.conf import settings
from starlette.requests import Request

from apps.rewards.serving.problems import Problem


async def read_body(request: Request) -> bytes:
    """Raises Problem 413, with the limit, as soon as it is passed."""
    limit: int = settings.REWARDS_MAX_BODY_BYTES
    declared = request.headers.get("Content-Length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    async for chunk in request.stream():
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
