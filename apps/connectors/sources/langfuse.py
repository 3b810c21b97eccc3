"""Langfuse: traces with their observations by its public API.

Servers up to version 3 list traces (`GET /api/public/traces`) and give one whole (`GET /api/public/traces/{id}`);
version 4 has only observations (`GET /api/public/v2/observations`), from which traces are put together.
"""

import base64
from typing import Any

from apps.connectors.sources.peer_client import format_time, object_in, objects_in, path_part
from apps.connectors.sources.source import FetchedDocument, SourceContext, SourceKind, SourceOption
from apps.connectors.sources.trace_store import (
    SINCE,
    TraceList,
    TraceParts,
    TraceStore,
    Window,
    latest,
    trace_document,
)

_PAGE = 50
_PAGE_OF_OBSERVATIONS = 1000
_OBSERVATIONS = "/api/public/v2/observations"
_FIELDS = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
_BY_OBSERVATIONS = "observations"


class LangfuseStore(TraceStore):
    format = "langfuse"

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context, langfuse_headers(context))

    def list_traces(self, window: Window) -> TraceList:
        if object_in(window.page).get("by") == _BY_OBSERVATIONS:
            return self._list_by_observations(window)
        page = window.page if isinstance(window.page, int) else 1
        query = {
            "page": page,
            "limit": _PAGE,
            "fromTimestamp": format_time(window.start) if window.start else None,
            "toTimestamp": format_time(window.end),
            "orderBy": "timestamp.asc",
            "fields": "core",
            "name": self.context.option("trace_name"),
            "tags": self.context.option("tag"),
            "environment": self.context.option("environment"),
        }
        answer = self.client.find("/api/public/traces", query)
        if answer is None:
            return self._list_by_observations(window)
        traces = objects_in(answer, "data")
        is_last = len(traces) < _PAGE or page >= int(object_in(answer, "meta").get("totalPages") or page)
        return TraceList(
            [str(each["id"]) for each in traces if each.get("id")], None if is_last else page + 1
        )

    def fetch(self, source_id: str) -> FetchedDocument | None:
        trace = self.client.find(f"/api/public/traces/{path_part(source_id)}")
        if isinstance(trace, dict):
            observations = trace.get("observations")
            times = [trace.get("timestamp"), trace.get("updatedAt")]
            document = trace
        else:
            observations = self._observations({"traceId": source_id, "fields": _FIELDS})
            if not observations:
                return None
            times = []
            document = {"trace": _trace_of(source_id, observations), "observations": observations}
        for each in observations if isinstance(observations, list) else ():
            if isinstance(each, dict):
                times += [each.get("startTime"), each.get("endTime"), each.get("updatedAt")]
        return trace_document(
            document,
            last_activity=latest(*times),
            target={"trace": source_id},
            steady=observations,
        )

    def _list_by_observations(self, window: Window) -> TraceList:
        query = {
            "limit": _PAGE_OF_OBSERVATIONS,
            "cursor": object_in(window.page).get("cursor"),
            "fields": "core",
            "fromStartTime": format_time(window.start) if window.start else None,
            "toStartTime": format_time(window.end),
            "environment": self.context.option("environment"),
        }
        answer = self.client.get(_OBSERVATIONS, query)
        ids = [str(each["traceId"]) for each in objects_in(answer, "data") if each.get("traceId")]
        cursor = object_in(answer, "meta").get("cursor")
        page = {"by": _BY_OBSERVATIONS, "cursor": cursor} if cursor else None
        return TraceList(list(dict.fromkeys(ids)), page)

    def _observations(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        found = TraceParts()
        cursor = None
        while True:
            answer = self.client.find(_OBSERVATIONS, query | {"limit": 100, "cursor": cursor})
            if answer is None:
                return found.parts
            cursor = object_in(answer, "meta").get("cursor")
            found.add(objects_in(answer, "data"), cursor)
            if not cursor:
                return sorted(found.parts, key=lambda each: str(each.get("startTime")))


def langfuse_headers(context: SourceContext) -> dict[str, str]:
    pair = f"{context.connector.username}:{context.secret}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _trace_of(source_id: str, observations: list[dict[str, Any]]) -> dict[str, Any]:
    """What the observations know of their trace."""
    root = next((each for each in observations if not each.get("parentObservationId")), observations[0])
    trace = {
        "id": source_id,
        "name": root.get("traceName") or root.get("name"),
        "timestamp": root.get("startTime"),
        **{
            key: root.get(key) for key in ("userId", "sessionId", "tags", "release", "version", "environment")
        },
    }
    return {key: value for key, value in trace.items() if value not in (None, "", [])}


KIND = SourceKind(
    name="langfuse",
    title="Langfuse",
    lead="Traces with their observations and scores, of Langfuse Cloud or your own server.",
    open=LangfuseStore,
    default_address="https://cloud.langfuse.com",
    address_help="Base URL of the server, such as https://cloud.langfuse.com or https://us.cloud.langfuse.com.",
    username_label="Public key",
    key_label="Secret key",
    key_help="Both keys are in the settings of the Langfuse project, and choose the project.",
    key_required=True,
    options=(
        SourceOption("trace_name", "Trace name", "Only traces of this name."),
        SourceOption("tag", "Tag", "Only traces with this tag."),
        SourceOption("environment", "Environment", "Only traces of this environment, such as production."),
        SINCE,
    ),
    environment={
        "address": ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
        "username": ("LANGFUSE_PUBLIC_KEY",),
        "secret": ("LANGFUSE_SECRET_KEY",),
    },
)
