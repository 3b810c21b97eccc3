"""What can go wrong, with the service's own words."""

from collections.abc import Mapping
from typing import Any


class RewardServiceError(Exception):
    """The service failed or could not be reached. `problem` is its problem document (RFC 9457), empty without one."""

    def __init__(
        self, message: str, *, status: int | None = None, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem: dict[str, Any] = dict(problem or {})

    @property
    def pointer(self) -> str | None:
        """JSON pointer to the bad field of the request, where there is one: `/inputs/3/messages/0/role`."""
        pointer = self.problem.get("pointer")
        return pointer if isinstance(pointer, str) else None


class Unreachable(RewardServiceError):
    """No connection, after all attempts."""


class Refused(RewardServiceError):
    """The request will not succeed as it is: bad input, no such endpoint, no right to it."""


class Unavailable(RewardServiceError):
    """Overloaded, switched off or failing, after all attempts."""


class BadReply(RewardServiceError):
    """The reply is not one of a reward service."""
