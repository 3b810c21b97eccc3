"""The errors of the reward-modelling core that people see. Everything else is a bug."""

from typing import Self


class RewardError(Exception):
    """A sentence for the user: what was wrong, where, and what to do about it.

    pointer: JSON pointer to the bad field where the input was a document.
    """

    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer

    def at(self, prefix: str) -> Self:
        """The same error, with `prefix` put before its pointer."""
        # Not by `copy`: it would call __init__, whose arguments are others in each subclass.
        placed = self.__class__.__new__(self.__class__, *self.args)
        placed.__dict__.update(self.__dict__)
        placed.pointer = prefix + (self.pointer or "")
        return placed


class Unavailable(RewardError):
    """Someone who is needed does not answer; no one's input is wrong. retry_after: seconds."""

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class InvalidRecord(RewardError):
    """A record or item that does not have the shape the schema asks for."""
