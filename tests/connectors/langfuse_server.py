"""Langfuse by its OpenAPI definition (fern/apis/server): 3 with traces, 4 with observations."""

import json
from datetime import datetime, timedelta
from typing import Any

from tests.connectors.contract_server import Answer, Call, Peer

KEYS = "pk-lf-1:sk-lf-1"
_TRACES = {
    *("page", "limit", "userId", "name", "sessionId", "fromTimestamp", "toTimestamp", "orderBy", "tags"),
    *("version", "release", "environment", "fields", "filter"),
}
_OBSERVATIONS = {
    *(
        "fields",
        "expandMetadata",
        "limit",
        "cursor",
        "name",
        "userId",
        "sessionId",
        "type",
        "traceId",
        "level",
    ),
    *("parentObservationId", "isRootObservation", "environment", "fromStartTime", "toStartTime", "version"),
    "filter",
}
_SCORE = {
    *("id", "traceId", "sessionId", "observationId", "datasetRunId", "name", "value", "comment", "metadata"),
    *("environment", "queueId", "dataType", "configId", "timestamp"),
}


class LangfuseServer(Peer):
    """traces: by id. scores: by id, as they were sent. version: 3 or 4."""

    def __init__(self, version: int = 3) -> None:
        super().__init__()
        self.version = version
        self.traces: dict[str, dict[str, Any]] = {}
        self.scores: dict[str, dict[str, Any]] = {}

    def add(self, name: str, at: str, *, question: str = "Where is my order?", steps: int = 1) -> None:
        self.traces[name] = langfuse_trace(name, at, question=question, steps=steps)

    def answer(self, call: Call) -> Answer:
        if call.basic != KEYS:
            return Answer(
                {"message": "Invalid credentials. Confirm that you've configured the correct host."}, 401
            )
        if call.path == "/api/public/scores" and call.method == "POST":
            return self._score(call)
        if call.path == "/api/public/v2/observations":
            return self._observations(call)
        if self.version == 3 and call.path == "/api/public/traces":
            return self._list(call)
        trace = self.traces.get(call.path.removeprefix("/api/public/traces/"))
        if self.version == 3 and trace is not None:
            scores = [score for score in self.scores.values() if score.get("traceId") == trace["id"]]
            return Answer(trace | {"scores": scores})
        return Answer({"message": "Not found", "error": "LangfuseNotFoundError"}, 404)

    def _list(self, call: Call) -> Answer:
        assert set(call.query) <= _TRACES, call.query
        page, limit = int(call.query.get("page", 1)), int(call.query.get("limit", 50))
        if limit > 100:
            return Answer({"message": "limit: Number must be less than or equal to 100"}, 400)
        found = [
            trace
            for trace in self.traces.values()
            if _within(trace["timestamp"], call.query.get("fromTimestamp"), call.query.get("toTimestamp"))
            and call.query.get("name") in (None, trace["name"])
        ]
        found.sort(key=lambda trace: trace["timestamp"], reverse=call.query.get("orderBy") != "timestamp.asc")
        shown = found[(page - 1) * limit : page * limit]
        rows = [
            trace
            | {
                "observations": [],
                "scores": [],
                "input": None,
                "output": None,
                "latency": -1,
                "totalCost": -1,
            }
            for trace in shown
        ]
        pages = -(-len(found) // limit)
        meta = {"page": page, "limit": limit, "totalItems": len(found), "totalPages": pages}
        return Answer({"data": rows, "meta": meta})

    def _observations(self, call: Call) -> Answer:
        assert set(call.query) <= _OBSERVATIONS, call.query
        groups = set(call.query.get("fields", "core,basic").split(","))
        found = [
            each
            for trace in self.traces.values()
            for each in trace["observations"]
            if call.query.get("traceId") in (None, trace["id"])
            and _within(each["startTime"], call.query.get("fromStartTime"), call.query.get("toStartTime"))
        ]
        found.sort(key=lambda each: each["startTime"], reverse=True)
        start, limit = int(call.query.get("cursor", 0)), int(call.query.get("limit", 50))
        if limit > 1000:
            return Answer({"message": "limit: Number must be less than or equal to 1000"}, 400)
        rows = [_fields(each, groups) for each in found[start : start + limit]]
        meta = {"cursor": str(start + limit)} if start + limit < len(found) else {}
        return Answer({"data": rows, "meta": meta})

    def _score(self, call: Call) -> Answer:
        body = call.body
        if set(body) - _SCORE or not isinstance(body.get("name"), str) or "value" not in body:
            return Answer({"message": "Invalid request data", "error": sorted(set(body) - _SCORE)}, 400)
        if body.get("dataType") == "BOOLEAN" and body["value"] not in (0, 1):
            return Answer({"message": "Boolean score values must be 0 or 1"}, 400)
        is_text = isinstance(body["value"], str)
        if is_text != (body.get("dataType") in ("CATEGORICAL", "TEXT")):
            return Answer({"message": "value does not fit the data type"}, 400)
        self.scores[body["id"]] = body
        return Answer({"id": body["id"]})


def langfuse_trace(name: str, at: str, *, question: str, steps: int) -> dict[str, Any]:
    """A trace as GET /api/public/traces/{id} gives it (TraceWithFullDetails)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    root = _observation(f"{name}-root", name, None, "AGENT", at, "support agent", question, "Done.")
    observations = [root]
    for number in range(steps):
        reply = {"role": "assistant", "content": f"Looking at it, part {number + 1}."}
        made = _observation(
            f"{name}-{number}",
            name,
            root["id"],
            "GENERATION",
            _later(at, number + 1),
            "llm",
            list(messages),
            reply,
        )
        observations.append(
            made | {"model": "small-1", "usageDetails": {"input": 10, "output": 5, "total": 15}}
        )
        messages += [reply, {"role": "user", "content": f"Go on, {number + 1}."}]
    return {
        "id": name,
        "timestamp": at,
        "name": "support",
        "input": question,
        "output": "Done.",
        "sessionId": None,
        "release": None,
        "version": None,
        "userId": None,
        "metadata": {},
        "tags": [],
        "public": False,
        "environment": "default",
        "createdAt": at,
        "updatedAt": _later(at, steps),
        "htmlPath": f"/project/p/traces/{name}",
        "latency": 2.0,
        "totalCost": 0.0,
        "observations": observations,
        "scores": [],
    }


def _observation(
    name: str, trace: str, parent: str | None, kind: str, at: str, title: str, given: Any, gave: Any
) -> dict[str, Any]:
    return {
        "id": name,
        "traceId": trace,
        "parentObservationId": parent,
        "type": kind,
        "name": title,
        "startTime": at,
        "endTime": _later(at, 1),
        "completionStartTime": None,
        "model": None,
        "modelParameters": {},
        "input": given,
        "output": gave,
        "metadata": {},
        "level": "DEFAULT",
        "statusMessage": None,
        "version": None,
        "environment": "default",
        "projectId": "p",
        "usage": {"input": 0, "output": 0, "total": 0, "unit": "TOKENS"},
        "usageDetails": {},
        "costDetails": {},
        "createdAt": at,
        "updatedAt": _later(at, 1),
    }


_GROUPS = {
    "core": ("id", "traceId", "startTime", "endTime", "projectId", "parentObservationId", "type"),
    "basic": ("name", "level", "statusMessage", "version", "environment", "userId", "sessionId"),
    "time": ("completionStartTime", "createdAt", "updatedAt"),
    "io": ("input", "output"),
    "metadata": ("metadata",),
    "model": ("model", "modelParameters"),
    "usage": ("usageDetails", "costDetails"),
    "prompt": (),
    "metrics": (),
    "trace_context": (),
}


def _fields(observation: dict[str, Any], groups: set[str]) -> dict[str, Any]:
    """Inputs and outputs of version 4 are texts."""
    names = {name for group in groups | {"core"} for name in _GROUPS[group]}
    row = {name: observation.get(name) for name in names}
    if "model" in groups:
        row["providedModelName"] = row.pop("model")
    for name in {"input", "output"} & set(row):
        if not isinstance(row[name], str):
            row[name] = json.dumps(row[name])
    return row


def _within(at: str, start: str | None, end: str | None) -> bool:
    moment = datetime.fromisoformat(at)
    return (start is None or moment >= datetime.fromisoformat(start)) and (
        end is None or moment < datetime.fromisoformat(end)
    )


def _later(at: str, seconds: int) -> str:
    moved = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")
