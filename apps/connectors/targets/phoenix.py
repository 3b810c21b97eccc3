"""Annotations of Phoenix, of spans and of traces; one of the same name and identifier is replaced."""

from typing import Any

from apps.annotation.feedback.trace_scores import TraceScore, phoenix_annotation
from apps.connectors.sources.peer_client import PeerClient
from apps.connectors.sources.phoenix import phoenix_headers
from apps.connectors.sources.source import SourceContext
from apps.connectors.targets.target import OutgoingScore

# Sent so that the answer says whether the span or trace is there.
_PATHS = {"span_id": "/v1/span_annotations", "trace_id": "/v1/trace_annotations"}


class PhoenixAnnotations:
    batch_size = 50

    def __init__(self, context: SourceContext) -> None:
        self.client = PeerClient(context.connector.address, phoenix_headers(context), context.pause)

    def close(self) -> None:
        self.client.close()

    def body(self, score: TraceScore, target: dict[str, Any]) -> dict[str, Any] | None:
        return phoenix_annotation(score)

    def send(self, scores: list[OutgoingScore]) -> list[str]:
        for key, path in _PATHS.items():
            if bodies := [each.body for each in scores if key in each.body]:
                self.client.send("POST", path, {"data": bodies}, {"sync": "true"})
        return [""] * len(scores)
