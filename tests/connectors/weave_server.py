"""Weave's trace server as its Python client calls it: calls by query, as JSON lines."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.connectors.contract_server import Answer, Call, Peer

KEY, PROJECT = "0" * 40, "team/support"
_QUERY = {
    *("project_id", "columns", "expand_columns", "filter", "include_costs", "include_feedback"),
    *("include_storage_size", "include_total_storage_size", "include_usernames", "latest_only", "limit"),
    *("offset", "query", "return_expanded_column_values", "sort_by"),
}
_FILTER = {
    *("call_ids", "input_refs", "op_names", "output_refs", "parent_ids", "thread_ids", "trace_ids"),
    *("trace_roots_only", "turn_ids", "wb_run_ids", "wb_user_ids"),
}


class WeaveServer(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.stored: list[dict[str, Any]] = []

    def add(self, number: int) -> str:
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
        trace, root, child = (
            str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number} {name}")) for name in ("trace", "root", "llm")
        )
        asked = [{"role": "user", "content": f"Question {number}?"}]
        choices = [{"message": {"role": "assistant", "content": f"Answer {number}."}}]
        self.stored += [
            weave_call(trace, root, None, "support_agent", at, {"question": asked[0]["content"]}, "ok"),
            weave_call(
                trace,
                child,
                root,
                "openai.chat.completions.create",
                at,
                {"messages": asked},
                {"choices": choices},
            ),
        ]
        return trace

    def answer(self, call: Call) -> Answer:
        if call.basic != f"api:{KEY}":
            return Answer({"detail": "Unauthorized"}, 401)
        if (call.method, call.path) != ("POST", "/calls/stream_query"):
            return Answer({"detail": "Not Found"}, 404)
        body = call.body
        if set(body) - _QUERY or set(body.get("filter") or {}) - _FILTER:
            return Answer({"detail": [{"loc": ["body"], "msg": "extra fields not permitted"}]}, 422)
        if body["project_id"] != PROJECT:
            return Answer({"detail": f"project {body['project_id']} not found"}, 404)
        rows = self._found(body)
        if "columns" in body:
            rows = [{name: row[name] for name in body["columns"]} for row in rows]
        return Answer(raw=b"".join(json.dumps(row).encode() + b"\n" for row in rows))

    def _found(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        chosen = body.get("filter") or {}
        rows = [
            row
            for row in self.stored
            if (not chosen.get("trace_roots_only") or row["parent_id"] is None)
            and row["trace_id"] in chosen.get("trace_ids", [row["trace_id"]])
            and ("query" not in body or _holds(body["query"]["$expr"], row))
        ]
        (sort,) = body.get("sort_by") or [{"field": "started_at", "direction": "desc"}]
        rows.sort(key=lambda row: row[sort["field"]], reverse=sort["direction"] == "desc")
        start = body.get("offset") or 0
        return rows[start : start + body["limit"]] if body.get("limit") else rows[start:]


def _holds(expression: dict[str, Any], row: dict[str, Any]) -> bool:
    ((operator, operands),) = expression.items()
    if operator == "$and":
        return all(_holds(each, row) for each in operands)
    if operator == "$not":
        return not _holds(operands[0], row)
    assert operator == "$gte" and operands[0] == {"$getField": "started_at"}, expression
    return datetime.fromisoformat(row["started_at"]).timestamp() >= operands[1]["$literal"]


def weave_call(
    trace: str, name: str, parent: str | None, operation: str, at: datetime, inputs: Any, output: Any
) -> dict[str, Any]:
    """A call as the server gives it (CallSchema)."""
    return {
        "id": name,
        "project_id": PROJECT,
        "op_name": f"weave:///{PROJECT}/op/{operation}:v0",
        "display_name": None,
        "trace_id": trace,
        "parent_id": parent,
        "thread_id": None,
        "turn_id": None,
        "started_at": at.isoformat(),
        "ended_at": (at + timedelta(seconds=1)).isoformat(),
        "exception": None,
        "attributes": {},
        "inputs": inputs,
        "output": output,
        "summary": {"usage": {}},
        "wb_user_id": None,
        "wb_run_id": None,
        "wb_run_step": None,
        "deleted_at": None,
        "storage_size_bytes": None,
        "total_storage_size_bytes": None,
    }
