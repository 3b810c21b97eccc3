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


class JobFailed(RewardServiceError):
    """A job that was waited for ended without a result. job: what it is now, with `error` and `state`."""

    def __init__(self, message: str, job: Any) -> None:
        super().__init__(message)
        self.job = job


class MissingExtra(ImportError):
    """A call needs an optional package that is not installed; the message says which extra brings it."""

    def __init__(self, call: str, extra: str, package: str) -> None:
        super().__init__(
            f"{call} needs {package}, which is not installed; the extra `{extra}` of the client brings it, "
            f"or: pip install {package}"
        )
