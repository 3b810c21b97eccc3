"""Why a replica gave no logits. The texts follow "The server NAME": callers see them, so they name no address."""


class ServerFailure(Exception):
    """There is no valid reply. retry_after: seconds that the server asks for, or None. detail: for the log only."""

    def __init__(self, reason: str, *, retry_after: float | None = None, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.retry_after = retry_after


class RefusedRequest(ServerFailure):
    """It answers, and refuses this request: 400, 404, 422."""


class WrongReplica(ServerFailure):
    """It computes another model, or reads less of an item: well for other models, perhaps."""
