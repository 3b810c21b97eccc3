"""LangSmith as its Python client (langsmith 0.x) calls it: sessions, runs by query, feedback."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.connectors.contract_server import Answer, Call, Peer

KEY = "lsv2_pt_1"
SESSION = "5d1c3f0e-3b0e-4c9c-8a5e-0f6f7c1f2d11"
_QUERY = {
    *(
        "session",
        "run_type",
        "reference_example",
        "query",
        "filter",
        "trace_filter",
        "tree_filter",
        "is_root",
    ),
    *("parent_run", "start_time", "end_time", "error", "id", "trace", "select", "limit", "order", "cursor"),
}
_FEEDBACK = {
    *(
        "id",
        "created_at",
        "modified_at",
        "run_id",
        "trace_id",
        "key",
        "score",
        "value",
        "comment",
        "correction",
    ),
    *(
        "feedback_source",
        "session_id",
        "start_time",
        "comparative_experiment_id",
        "feedback_group_id",
        "extra",
    ),
    *("feedback_config", "extend_trace_retention", "error"),
}


class LangSmithServer(Peer):
    """runs: of all traces. feedback: by id, as it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[dict[str, Any]] = []
        self.feedback: dict[str, dict[str, Any]] = {}
        self.page = 100

    def add(self, number: int) -> str:
        """A trace that began so many minutes after a morning: an agent that calls a model."""
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
        root, child = (str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {name}")) for name in ("root", "llm"))
        asked = {"role": "user", "content": f"Question {number}?"}
        answered = {"role": "assistant", "content": f"Answer {number}."}
        self.runs += [
            langsmith_run(
                root, None, root, "agent", "chain", at, {"input": asked["content"]}, {"output": "ok"}
            ),
            langsmith_run(
                root, root, child, "ChatOpenAI", "llm", at, {"messages": [asked]}, {"messages": [answered]}
            ),
        ]
        return root

    def answer(self, call: Call) -> Answer:
        if call.headers.get("x-api-key") != KEY:
            return Answer({"detail": "Invalid token"}, 401)
        if call.path == "/sessions" and call.method == "GET":
            named = call.query.get("name") == "support"
            return Answer([{"id": SESSION, "name": "support", "tenant_id": SESSION}] if named else [])
        if call.path == "/runs/query" and call.method == "POST":
            return self._query(call.body)
        if call.path == "/feedback" and call.method == "POST":
            return self._feedback(call.body)
        if call.path.removeprefix("/feedback/") in self.feedback and call.method == "PATCH":
            if set(call.body) - {"score", "value", "comment", "correction"}:
                return Answer({"detail": [{"loc": ["body"], "msg": "extra fields"}]}, 422)
            self.feedback[call.path.removeprefix("/feedback/")] |= call.body
            return Answer({"message": "Feedback updated"})
        return Answer({"detail": "Not Found"}, 404)

    def _query(self, body: dict[str, Any]) -> Answer:
        if set(body) - _QUERY or body.get("limit", 1) > 100:
            return Answer({"detail": [{"loc": ["body"], "msg": str(set(body) - _QUERY)}]}, 422)
        if not any(body.get(name) for name in ("session", "id", "parent_run", "trace", "reference_example")):
            return Answer({"detail": "At least one of 'session', 'id', ... must be specified"}, 400)
        found = [run for run in self.runs if body["session"] == [SESSION]]
        if body.get("is_root"):
            found = [run for run in found if run["parent_run_id"] is None]
        if "trace" in body:
            found = [run for run in found if run["trace_id"] == body["trace"]]
        if "start_time" in body:
            start = datetime.fromisoformat(body["start_time"])
            start = start if start.tzinfo else start.replace(tzinfo=UTC)
            found = [run for run in found if _moment(run) >= start]
        if body.get("filter", "").startswith('lt(start_time, "'):
            end = datetime.fromisoformat(body["filter"].split('"')[1])
            found = [run for run in found if _moment(run) < end]
        found.sort(key=_moment, reverse=body.get("order") != "asc")
        start_at, size = int(body.get("cursor") or 0), min(body.get("limit", 100), self.page)
        rows = found[start_at : start_at + size]
        if "select" in body:
            rows = [{name: run.get(name) for name in {"id", *body["select"]}} for run in rows]
        following = str(start_at + size) if start_at + size < len(found) else None
        return Answer({"runs": rows, "cursors": {"next": following, "prev": None}})

    def _feedback(self, body: dict[str, Any]) -> Answer:
        if set(body) - _FEEDBACK or not isinstance(body.get("key"), str):
            return Answer({"detail": [{"loc": ["body"], "msg": str(set(body) - _FEEDBACK)}]}, 422)
        if not any(run["id"] == body["run_id"] for run in self.runs):
            return Answer({"detail": "Run not found"}, 404)
        uuid.UUID(body["id"])
        if body["id"] in self.feedback:
            return Answer({"detail": "Feedback already exists"}, 409)
        self.feedback[body["id"]] = body
        return Answer(body)


def langsmith_run(
    trace: str, parent: str | None, name: str, title: str, kind: str, at: datetime, given: Any, gave: Any
) -> dict[str, Any]:
    """A run as the API gives it (RunSchema)."""
    start, end = at.isoformat(), (at + timedelta(seconds=1)).isoformat()
    return {
        "id": name,
        "trace_id": trace,
        "parent_run_id": parent,
        "dotted_order": f"{at:%Y%m%dT%H%M%S%f}Z{trace}" + (f".{at:%Y%m%dT%H%M%S%f}Z{name}" if parent else ""),
        "session_id": SESSION,
        "name": title,
        "run_type": kind,
        "start_time": start,
        "end_time": end,
        "inputs": given,
        "outputs": gave,
        "error": None,
        "extra": {"metadata": {}},
        "tags": [],
        "events": [],
        "status": "success",
        "feedback_stats": {},
        "app_path": f"/o/t/projects/p/{SESSION}/r/{name}",
    }


def _moment(run: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(run["start_time"])
