"""What takes scores: bodies are made first, so that one which the peer has already is not sent again."""

from dataclasses import dataclass
from typing import Any, Protocol

from apps.annotation.feedback.trace_scores import TraceScore


@dataclass(frozen=True, slots=True)
class OutgoingScore:
    """score: its id names it at the peer. target: of the document that it is about. body: as the peer takes it.
    remote_id: what the peer called it before; empty for one that we did not send yet."""

    score: TraceScore
    target: dict[str, Any]
    body: dict[str, Any]
    remote_id: str = ""


class ScoreTarget(Protocol):
    """batch_size: how many scores a call of `send` may have."""

    batch_size: int

    def body(self, score: TraceScore, target: dict[str, Any]) -> dict[str, Any] | None:
        """None where the peer has no form for it."""
        ...

    def send(self, scores: list[OutgoingScore]) -> list[str]:
        """Create or replace them; the peer's ids in order, empty where it uses ours. Raises DomainError."""
        ...

    def close(self) -> None: ...
