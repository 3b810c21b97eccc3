"""The errors people see. Everything that is not one of these is a bug."""


class DomainError(Exception):
    """A sentence for the user: what was wrong, where, and what to do about it.

    pointer: JSON pointer to the bad field where the input was a document. status: the HTTP status it answers with.
    """

    def __init__(self, message: str, *, pointer: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer
        self.status = status


class NotFound(DomainError):
    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer, status=404)


class Forbidden(DomainError):
    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer, status=403)


class Conflict(DomainError):
    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer, status=409)


class TooManyRequests(DomainError):
    """retry_after: seconds, for the header of this name."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message, status=429)
        self.retry_after = retry_after
