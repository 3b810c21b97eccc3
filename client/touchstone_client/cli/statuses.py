"""Exit statuses of `touchstone`, and the failures that end a command with one."""

from typing import Any

SUCCEEDED = 0
REFUSED = 1  # the server refused it, or something went wrong on the way
USAGE = 2  # a mistake in the command line, or no settings of a server
UNREACHABLE = 3  # the server does not respond, or is overloaded
INTERRUPTED = 130  # by Ctrl-C
BROKEN_PIPE = 141  # the reader of the output closed it, as `head` does


class CommandFailed(Exception):
    """Ends a command with one sentence. result: printed by `--json`, next to the error."""

    def __init__(
        self,
        message: str,
        *,
        status: int = REFUSED,
        pointer: str | None = None,
        result: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.pointer, self.result = status, pointer, dict(result or {})


class UsageFailed(CommandFailed):
    def __init__(self, message: str) -> None:
        super().__init__(message, status=USAGE)
