"""LangSmith: traces of a project by its runs, as its Python client lists them (`POST /runs/query`)."""

from typing import Any

from apps.connectors.sources.peer_client import format_time, object_in, objects_in
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

_PAGE = 100  # the most that the API gives
_QUERY = "/runs/query"
_FIELDS = [
    *("id", "trace_id", "parent_run_id", "dotted_order", "session_id", "name", "run_type", "status", "error"),
    *("start_time", "end_time", "first_token_time", "inputs", "outputs", "extra", "events", "tags"),
    *("reference_example_id", "feedback_stats", "prompt_tokens", "completion_tokens", "total_tokens"),
    *("prompt_cost", "completion_cost", "total_cost"),
]


class LangSmithStore(TraceStore):
    format = "langsmith"

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context, langsmith_headers(context))
        self._session = ""

    def list_traces(self, window: Window) -> TraceList:
        filters = [f'lt(start_time, "{format_time(window.end)}")']
        if self.context.option("tag"):
            filters.append(f"has(tags, {_quoted(self.context.option('tag'))})")
        query: dict[str, Any] = {
            "session": [self._find_session()],
            "is_root": True,
            "filter": filters[0] if len(filters) == 1 else f"and({', '.join(filters)})",
            "select": ["id", "trace_id", "start_time"],
            "order": "asc",
            "limit": _PAGE,
        }
        if window.start:
            query["start_time"] = format_time(window.start)
        if window.page:
            query["cursor"] = window.page
        answer = self.client.send("POST", _QUERY, query)
        ids = [str(run.get("trace_id") or run["id"]) for run in objects_in(answer, "runs") if run.get("id")]
        return TraceList(ids, object_in(answer, "cursors").get("next") or None)

    def fetch(self, source_id: str) -> FetchedDocument | None:
        found = TraceParts()
        query: dict[str, Any] = {
            "session": [self._find_session()],
            "trace": source_id,
            "select": _FIELDS,
            "limit": _PAGE,
        }
        while True:
            answer = self.client.send("POST", _QUERY, query)
            following = object_in(answer, "cursors").get("next")
            found.add(objects_in(answer, "runs"), following)
            if not following:
                break
            query["cursor"] = following
        runs = found.parts
        if not runs:
            return None
        runs.sort(key=lambda run: str(run.get("dotted_order") or run.get("start_time")))
        root = next((run for run in runs if not run.get("parent_run_id")), runs[0])
        steady = [
            {name: run.get(name) for name in ("id", "start_time", "end_time", "inputs", "outputs", "error")}
            for run in runs
        ]
        times = [run.get(name) for run in runs for name in ("start_time", "end_time")]
        return trace_document(
            {"runs": runs},
            last_activity=latest(*times),
            target={"trace": source_id, "run": str(root.get("id")), "session": self._find_session()},
            steady=steady,
        )

    def _find_session(self) -> str:
        """The id of the project, which LangSmith's API calls a session."""
        if not self._session:
            name = self.context.option("project") or "default"
            answer = self.client.get("/sessions", {"name": name, "limit": 10})
            found = [each for each in answer if isinstance(each, dict)] if isinstance(answer, list) else []
            session = next((each for each in found if each.get("name") == name), None)
            if session is None:
                raise DomainError(
                    f"{self.client.host} has no tracing project {name!r} that this key may read. Enter "
                    "the name of one.",
                    pointer="/options/project",
                )
            self._session = str(session["id"])
        return self._session


def langsmith_headers(context: SourceContext) -> dict[str, str]:
    workspace = context.option("workspace")
    return {"x-api-key": context.secret} | ({"X-Tenant-Id": workspace} if workspace else {})


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


KIND = SourceKind(
    name="langsmith",
    title="LangSmith",
    lead="Traces of a LangSmith tracing project, with all their runs and feedback.",
    open=LangSmithStore,
    default_address="https://api.smith.langchain.com",
    address_help="Address of the API, such as https://eu.api.smith.langchain.com, or https://HOST/api/v1 of your own.",
    key_label="API key",
    key_help="In the settings of the workspace.",
    key_required=True,
    options=(
        SourceOption("project", "Project", "Name of the tracing project.", default="default"),
        SourceOption("tag", "Tag", "Only traces whose root run has this tag."),
        SourceOption("workspace", "Workspace ID", "Needed for a key of several workspaces."),
        SINCE,
    ),
    environment={
        "address": ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"),
        "secret": ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"),
        "project": ("LANGSMITH_PROJECT", "LANGCHAIN_PROJECT"),
        "workspace": ("LANGSMITH_WORKSPACE_ID",),
    },
)
