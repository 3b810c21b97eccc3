"""MLflow: traces of an experiment by the REST API of a tracking server (3.x)."""

import base64

from apps.connectors.sources.peer_client import object_in, objects_in, parse_time
from apps.connectors.sources.source import FetchedDocument, SourceContext, SourceKind, SourceOption
from apps.connectors.sources.trace_store import SINCE, TraceList, TraceStore, Window, trace_document
from apps.core.errors import DomainError

_PAGE = 100
API = "/api/3.0/mlflow/traces"
_ENDED = ("OK", "ERROR")


class MLflowStore(TraceStore):
    format = "otel-spans"

    def __init__(self, context: SourceContext) -> None:
        super().__init__(context, mlflow_headers(context))
        self._experiment_id = ""

    def list_traces(self, window: Window) -> TraceList:
        filters = [f"attributes.timestamp_ms < {int(window.end.timestamp() * 1000)}"]
        if window.start:
            filters.append(f"attributes.timestamp_ms >= {int(window.start.timestamp() * 1000)}")
        answer = self.client.send(
            "POST",
            f"{API}/search",
            {
                "locations": [
                    {
                        "type": "MLFLOW_EXPERIMENT",
                        "mlflow_experiment": {"experiment_id": self._find_experiment()},
                    }
                ],
                "filter": " AND ".join(filters),
                "max_results": _PAGE,
                "order_by": ["timestamp_ms ASC"],
                **({"page_token": window.page} if window.page else {}),
            },
        )
        traces = objects_in(answer, "traces") if object_in(answer).get("traces") else []
        ids = [str(each["trace_id"]) for each in traces if each.get("trace_id")]
        return TraceList(ids, object_in(answer).get("next_page_token") or None)

    def fetch(self, source_id: str) -> FetchedDocument | None:
        answer = self.client.find(f"{API}/batchGet", {"trace_ids": source_id})
        traces = objects_in(answer, "traces") if object_in(answer).get("traces") else []
        if not traces:
            return None
        info, spans = object_in(traces[0], "trace_info"), traces[0].get("spans")
        # A trace that ended does not change; one that runs is as recent as now.
        last = parse_time(info.get("request_time")) if info.get("state") in _ENDED else self.context.now
        spans = spans if isinstance(spans, list) else []
        return trace_document(
            {"info": info, "data": {"spans": spans}},
            last_activity=last,
            target={"trace": source_id},
            steady=spans,
        )

    def _find_experiment(self) -> str:
        if self._experiment_id:
            return self._experiment_id
        name = self.context.option("experiment") or "Default"
        if name.isdecimal():
            self._experiment_id = name
            return name
        answer = self.client.find("/api/2.0/mlflow/experiments/get-by-name", {"experiment_name": name})
        found = object_in(answer, "experiment").get("experiment_id")
        if not found:
            raise DomainError(
                f"{self.client.host} has no experiment {name!r}. Enter the name of one, or its number.",
                pointer="/experiment",
            )
        self._experiment_id = str(found)
        return self._experiment_id


def mlflow_headers(context: SourceContext) -> dict[str, str]:
    """A password with a user name is sent as such, otherwise as a token."""
    if not context.secret:
        return {}
    if context.connector.username:
        pair = f"{context.connector.username}:{context.secret}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {"Authorization": f"Bearer {context.secret}"}


KIND = SourceKind(
    name="mlflow",
    title="MLflow",
    lead="Traces of an experiment of an MLflow tracking server, with their assessments.",
    open=MLflowStore,
    address_help="Address of the tracking server (MLFLOW_TRACKING_URI), version 3.",
    username_label="User name",
    key_label="Password or token",
    key_help="Leave both empty if the server has no authentication; leave the user name empty for a token.",
    options=(
        SourceOption("experiment", "Experiment", "Name or number of the experiment.", default="Default"),
        SINCE,
    ),
    environment={
        "address": ("MLFLOW_TRACKING_URI",),
        "username": ("MLFLOW_TRACKING_USERNAME",),
        "secret": ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"),
        "experiment": ("MLFLOW_EXPERIMENT_NAME",),
    },
)
