"""Arize Phoenix: traces of a project, and the spans of each, by its REST API.

Traces are listed by when they began, each page from the last time of the page before: the cursor of Phoenix goes by
row numbers, which are in another order.
"""

from typing import Any

from apps.connectors.sources.peer_client import (
    Query,
    format_time,
    object_in,
    objects_in,
    parse_time,
    path_part,
)
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
from apps.core.errors import DomainError

_PAGE = 100
_MOST_AT_ONE_TIME = 1000  # traces that may have begun in the same microsecond
_SPANS = 200


class PhoenixStore(TraceStore):
    format = "otel-spans"

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context, phoenix_headers(context))
        self._project = path_part(context.option("project") or "default")

    def list_traces(self, window: Window) -> TraceList:
        after = object_in(window.page)
        start = parse_time(after.get("start")) or window.start
        traces = self._traces(start, window, _PAGE)
        if len(traces) == _PAGE and traces[0].get("start_time") == traces[-1].get("start_time"):
            traces = self._traces(start, window, _MOST_AT_ONE_TIME)
        is_last = len(traces) < _PAGE
        last = traces[-1].get("start_time") if traces else None
        if not is_last and last == traces[0].get("start_time"):
            raise DomainError(
                f"Over {_MOST_AT_ONE_TIME:,} traces of the project began at {last}, so they cannot be listed in parts."
            )
        ids = [str(each["trace_id"]) for each in traces if each.get("trace_id")]
        return TraceList(ids, None if is_last else {"start": last})

    def fetch(self, source_id: str) -> FetchedDocument | None:
        found = TraceParts()
        cursor: str | None = None
        while True:
            query: Query = {"trace_id": source_id, "limit": _SPANS, "cursor": cursor}
            answer = self.client.find(f"/v1/projects/{self._project}/spans", query)
            if answer is None:
                return None
            cursor = answer.get("next_cursor")
            found.add(objects_in(answer, "data"), cursor)
            if not cursor:
                break
        spans = found.parts
        if not spans:
            return None
        spans.sort(key=lambda span: str(span.get("start_time")))
        root = next((span for span in spans if not span.get("parent_id")), spans[0])
        return trace_document(
            {"spans": spans},
            last_activity=latest(*(span.get("end_time") or span.get("start_time") for span in spans)),
            target={"trace": source_id, "span": str(object_in(root, "context").get("span_id") or "")},
        )

    def _traces(self, start: Any, window: Window, limit: int) -> list[dict[str, Any]]:
        query = {
            "start_time": start.isoformat() if start else None,
            "end_time": format_time(window.end),
            "sort": "start_time",
            "order": "asc",
            "limit": limit,
        }
        return objects_in(self.client.get(f"/v1/projects/{self._project}/traces", query), "data")


def phoenix_headers(context: SourceContext) -> dict[str, str]:
    return {"Authorization": f"Bearer {context.secret}"} if context.secret else {}


KIND = SourceKind(
    name="phoenix",
    title="Phoenix",
    lead="Traces of a project of Arize Phoenix, with all their spans.",
    open=PhoenixStore,
    address_help="Base URL of the server, such as https://app.phoenix.arize.com/s/my-space.",
    key_label="API key",
    key_help="Leave empty if the server has no authentication.",
    options=(SourceOption("project", "Project", "Name of the Phoenix project.", default="default"), SINCE),
    environment={
        "address": ("PHOENIX_BASE_URL", "PHOENIX_COLLECTOR_ENDPOINT"),
        "secret": ("PHOENIX_API_KEY",),
        "project": ("PHOENIX_PROJECT_NAME",),
    },
)
