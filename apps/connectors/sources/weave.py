"""W&B Weave: traces of a project by its calls (`POST /calls/stream_query`), which come as JSON lines."""

import base64
from typing import Any

from apps.connectors.sources.peer_client import object_in
from apps.connectors.sources.source import FetchedDocument, SourceContext, SourceKind, SourceOption
from apps.connectors.sources.trace_store import SINCE, TraceList, TraceStore, Window, latest, trace_document

_PAGE = 200
_QUERY = "/calls/stream_query"
_STARTED = {"$getField": "started_at"}


class WeaveStore(TraceStore):
    format = "weave"

    def __init__(self, context: SourceContext) -> None:
        pair = base64.b64encode(f"api:{context.secret}".encode()).decode()
        super().__init__(context, {"Authorization": f"Basic {pair}"})
        self._project = context.option("project")

    def list_traces(self, window: Window) -> TraceList:
        # Servers have $gte for longer than $lt.
        began_before = {"$not": [{"$gte": [_STARTED, {"$literal": window.end.timestamp()}]}]}
        conditions: list[dict[str, Any]] = [began_before]
        if window.start:
            conditions.append({"$gte": [_STARTED, {"$literal": window.start.timestamp()}]})
        offset = window.page if isinstance(window.page, int) else 0
        calls = self._calls(
            {
                "filter": {"trace_roots_only": True},
                "query": {"$expr": {"$and": conditions}},
                "sort_by": [{"field": "started_at", "direction": "asc"}],
                "columns": ["id", "trace_id", "started_at"],
                "limit": _PAGE,
                "offset": offset,
            }
        )
        ids = [str(call["trace_id"]) for call in calls if call.get("trace_id")]
        return TraceList(ids, offset + _PAGE if len(calls) == _PAGE else None)

    def fetch(self, source_id: str) -> FetchedDocument | None:
        calls = self._calls(
            {
                "filter": {"trace_ids": [source_id]},
                "sort_by": [{"field": "started_at", "direction": "asc"}],
                "include_costs": True,
                "include_feedback": True,
            }
        )
        if not calls:
            return None
        root = next((call for call in calls if not call.get("parent_id")), calls[0])
        steady = [
            {
                name: call.get(name)
                for name in ("id", "started_at", "ended_at", "inputs", "output", "exception")
            }
            for call in calls
        ]
        times = [call.get(name) for call in calls for name in ("started_at", "ended_at")]
        return trace_document(
            {"calls": calls},
            last_activity=latest(*times),
            target={"trace": source_id, "call": str(root.get("id"))},
            steady=steady,
        )

    def _calls(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        body = {"project_id": self._project} | query
        reply = self.client.call("POST", _QUERY, document=body, headers={"Accept": "application/jsonl"})
        lines = (line for line in reply.body.split(b"\n") if line.strip())
        return [object_in(self.client.decoded(line, _QUERY)) for line in lines]


KIND = SourceKind(
    name="weave",
    title="W&B Weave",
    lead="Traces of a Weights & Biases Weave project, with all their calls.",
    open=WeaveStore,
    default_address="https://trace.wandb.ai",
    address_help="Address of the trace server, such as https://trace.wandb.ai, or https://HOST/traces of your own.",
    key_label="API key",
    key_help="From your Weights & Biases account.",
    key_required=True,
    options=(
        SourceOption("project", "Project", "As ENTITY/PROJECT.", required=True),
        SINCE,
    ),
    environment={
        "address": ("WF_TRACE_SERVER_URL",),
        "secret": ("WANDB_API_KEY",),
        "project": ("WEAVE_PROJECT",),
    },
)
