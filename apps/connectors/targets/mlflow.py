"""Assessments of MLflow. The server gives them ids; ours is in their metadata, by which one is found again that was
created in a run which was killed before it could note the id."""

from typing import Any

from apps.annotation.feedback.trace_scores import TraceScore
from apps.connectors.sources.mlflow import API, mlflow_headers
from apps.connectors.sources.peer_client import PeerClient, object_in, path_part
from apps.connectors.sources.source import SourceContext
from apps.connectors.targets.target import OutgoingScore

_OUR_ID = "touchstone.id"
_SOURCES = {"HUMAN": "HUMAN", "LLM": "LLM_JUDGE", "CODE": "CODE"}


class MLflowAssessments:
    batch_size = 1

    def __init__(self, context: SourceContext) -> None:
        self.client = PeerClient(context.connector.address, mlflow_headers(context), context.pause)

    def close(self) -> None:
        self.client.close()

    def body(self, score: TraceScore, target: dict[str, Any]) -> dict[str, Any] | None:
        if "trace" not in target:
            return None
        value: Any = score.value
        if score.value is None or score.data_type == "category":
            value = score.label or score.name
        elif score.data_type == "boolean":
            value = bool(score.value)
        metadata = {str(name): str(each) for name, each in score.metadata.items()}
        body = {
            "assessment_name": score.name,
            "trace_id": target["trace"],
            "source": {
                "source_type": _SOURCES[score.annotator_kind],
                "source_id": str(
                    score.metadata.get("annotator") or score.metadata.get("endpoint") or "touchstone"
                ),
            },
            "feedback": {"value": value},
            "rationale": score.explanation,
            "metadata": metadata | {_OUR_ID: score.id},
        }
        return {name: each for name, each in body.items() if each is not None}

    def send(self, scores: list[OutgoingScore]) -> list[str]:
        return [self._send(each) for each in scores]

    def _send(self, each: OutgoingScore) -> str:
        place = f"{API}/{path_part(each.body['trace_id'])}"
        remote_id = each.remote_id or self._find(place, each.score.id)
        if not remote_id:
            answer = self.client.send("POST", f"{place}/assessments", {"assessment": each.body})
            return str(object_in(answer, "assessment").get("assessment_id") or "")
        body = {"rationale": ""} | each.body | {"assessment_id": remote_id}
        self.client.send(
            "PATCH",
            f"{place}/assessments/{path_part(remote_id)}",
            {"assessment": body, "update_mask": "feedback,rationale,metadata"},
        )
        return remote_id

    def _find(self, place: str, score_id: str) -> str:
        """The server's id of an assessment that has ours."""
        info = object_in(object_in(self.client.get(place), "trace"), "trace_info")
        listed = info.get("assessments")
        for each in listed if isinstance(listed, list) else ():
            if object_in(each, "metadata").get(_OUR_ID) == score_id:
                return str(object_in(each).get("assessment_id") or "")
        return ""
