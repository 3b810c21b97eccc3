"""The errors of the reward-modelling core that people see. Everything else is a bug."""


class RewardError(Exception):
    """A sentence for the user: what was wrong, where, and what to do about it.

    pointer: JSON pointer to the bad field where the input was a document.
    """

    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.pointer = pointer

    def at(self, prefix: str) -> "RewardError":
        """The same error, with `prefix` put before its pointer."""
        return type(self)(self.message, pointer=prefix + (self.pointer or ""))


class InvalidRecord(RewardError):
    """A record or item that does not have the shape the schema asks for."""
