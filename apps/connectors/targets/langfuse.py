"""Scores of Langfuse: `POST /api/public/scores`, which replaces the score of the same id."""

from typing import Any

from apps.annotation.feedback.trace_scores import TraceScore, langfuse_score
from apps.connectors.sources.langfuse import langfuse_headers
from apps.connectors.sources.peer_client import PeerClient
from apps.connectors.sources.source import SourceContext
from apps.connectors.targets.target import OutgoingScore


class LangfuseScores:
    batch_size = 1

    def __init__(self, context: SourceContext) -> None:
        self.client = PeerClient(context.connector.address, langfuse_headers(context), context.pause)

    def close(self) -> None:
        self.client.close()

    def body(self, score: TraceScore, target: dict[str, Any]) -> dict[str, Any] | None:
        return langfuse_score(score) | {"traceId": target["trace"]} if "trace" in target else None

    def send(self, scores: list[OutgoingScore]) -> list[str]:
        for each in scores:
            self.client.send("POST", "/api/public/scores", each.body)
        return [""] * len(scores)
