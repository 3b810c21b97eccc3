"""Feedback of LangSmith, by ids of ours: created by `POST /feedback`, changed by `PATCH /feedback/{id}`."""

import uuid
from http import HTTPStatus
from typing import Any

from apps.annotation.feedback.trace_scores import TraceScore
from apps.connectors.sources.langsmith import langsmith_headers
from apps.connectors.sources.peer_client import PeerClient, PeerRefused
from apps.connectors.sources.source import SourceContext
from apps.connectors.targets.target import OutgoingScore

_CHANGED = ("score", "value", "comment")
_SOURCES = {"HUMAN": "api", "LLM": "model", "CODE": "api"}


class LangSmithFeedback:
    batch_size = 1

    def __init__(self, context: SourceContext) -> None:
        self.client = PeerClient(context.connector.address, langsmith_headers(context), context.pause)

    def close(self) -> None:
        self.client.close()

    def body(self, score: TraceScore, target: dict[str, Any]) -> dict[str, Any] | None:
        if "trace" not in target:
            return None
        is_number = score.value is not None and score.data_type != "category"
        return {
            "id": score.id,
            "run_id": score.span if _is_uuid(score.span) else target["run"],
            "trace_id": target["trace"],
            "session_id": target["session"],
            "key": score.name,
            "score": score.value if is_number else None,
            "value": score.label or (None if is_number else score.name),
            "comment": score.explanation,
            "feedback_source": {"type": _SOURCES[score.annotator_kind], "metadata": score.metadata},
        }

    def send(self, scores: list[OutgoingScore]) -> list[str]:
        for each in scores:
            if each.remote_id:
                self._change(each.body)
                continue
            try:
                self.client.send("POST", "/feedback", each.body)
            except PeerRefused as error:
                if error.answered != HTTPStatus.CONFLICT:
                    raise
                self._change(each.body)
        return [each.score.id for each in scores]

    def _change(self, body: dict[str, Any]) -> None:
        self.client.send("PATCH", f"/feedback/{body['id']}", {name: body[name] for name in _CHANGED})


def _is_uuid(value: str | None) -> bool:
    try:
        uuid.UUID(value or "")
    except ValueError:
        return False
    return True
