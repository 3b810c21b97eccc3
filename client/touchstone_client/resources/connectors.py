"""`client.connectors`: traces that the server pulls from Langfuse, Phoenix, MLflow and others. Scope `admin`."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    NOT_GIVEN,
    Calls,
    DriverT,
    Flow,
    NotGiven,
    Request,
    changed,
    flow_operation,
    given,
    list_operation,
    operation,
    read_nothing,
)
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress


@api_object
class Connector(ApiObject):
    """every_minutes: None where it runs on demand only. has_secret: the secret itself is never returned."""

    id: int
    name: str
    kind: str = ""
    address: str = ""
    username: str = ""
    has_secret: bool = False
    options: dict[str, str] = field(default_factory=dict)
    settle_minutes: int = 0
    overlap_minutes: int = 0
    every_minutes: int | None = None
    push_endpoint: str = ""
    push_after_pull: bool = False
    state: str = ""
    next_run: datetime | None = None
    last_run: datetime | None = None
    last_error: str = ""
    created: datetime | None = None

    def __str__(self) -> str:
        return str(self.id)


@api_object
class RefusedSource(ApiObject):
    """source: id of the trace or file at the peer."""

    source: str
    message: str
    line: int = 1
    pointer: str | None = None


@api_object
class ConnectorRun(ApiObject):
    """created, duplicates, updated: trajectories. waiting: traces that were not quiet yet, for the next run.
    direction: pull or push. pushed, unchanged: scores that were sent, and those that the peer had already."""

    id: int
    connector: int
    state: str
    direction: str = ""
    error: str = ""
    progress: JobProgress = JobProgress()
    documents: int = 0
    created: int = 0
    duplicates: int = 0
    updated: int = 0
    waiting: int = 0
    rejected: tuple[RefusedSource, ...] = ()
    rejected_count: int = 0
    pushed: int = 0
    unchanged: int = 0
    started: datetime | None = None
    finished: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("rejected",)


class Connectors(Calls[DriverT]):
    @operation
    def create(
        self,
        kind: str,
        name: str,
        *,
        address: str | None = None,
        username: str | None = None,
        secret: str | None = None,
        options: Mapping[str, str] | None = None,
        settle_minutes: int | None = None,
        overlap_minutes: int | None = None,
        every_minutes: int | None = None,
        push_endpoint: str | None = None,
        push_after_pull: bool | None = None,
    ) -> Request[Connector]:
        """kind: langfuse, phoenix, mlflow, ...; docs/connectors.md has their options. every_minutes: its schedule.
        push_endpoint: whose rewards are pushed with the feedback."""
        body = given(
            address=address,
            username=username,
            secret=secret,
            options=None if options is None else dict(options),
            settle_minutes=settle_minutes,
            overlap_minutes=overlap_minutes,
            every_minutes=every_minutes,
            push_endpoint=push_endpoint,
            push_after_pull=push_after_pull,
        )
        body = {"kind": kind, "name": name, **body}
        return Request("POST", self._path("connectors"), ObjectReader(Connector), json=body)

    @operation
    def get(self, connector: int | Connector) -> Request[Connector]:
        return Request("GET", self._path("connectors", connector), ObjectReader(Connector))

    @operation
    def update(
        self,
        connector: int | Connector,
        *,
        name: str | None = None,
        address: str | None = None,
        username: str | None = None,
        secret: str | None = None,
        options: Mapping[str, str] | None = None,
        settle_minutes: int | None = None,
        overlap_minutes: int | None = None,
        every_minutes: int | NotGiven | None = NOT_GIVEN,
        push_endpoint: str | None = None,
        push_after_pull: bool | None = None,
        state: str | None = None,
    ) -> Request[Connector]:
        """Change what is given. every_minutes: None for runs on demand only. state: active or paused."""
        body = given(
            name=name,
            address=address,
            username=username,
            secret=secret,
            options=None if options is None else dict(options),
            settle_minutes=settle_minutes,
            overlap_minutes=overlap_minutes,
            push_endpoint=push_endpoint,
            push_after_pull=push_after_pull,
            state=state,
        ) | changed(every_minutes=every_minutes)
        path = self._path("connectors", connector)
        return Request("PATCH", path, ObjectReader(Connector), json=body)

    @operation
    def delete(self, connector: int | Connector) -> Request[None]:
        """The trajectories that it brought stay."""
        return Request("DELETE", self._path("connectors", connector), read_nothing)

    @operation
    def start_run(self, connector: int | Connector, *, push: bool = False) -> Request[ConnectorRun]:
        """Pull what is new, or push scores back; follow it with `wait`."""
        path = self._path("connectors", connector, "runs")
        body = {"direction": "push" if push else "pull"}
        return Request("POST", path, ObjectReader(ConnectorRun), json=body)

    @operation
    def get_run(self, run: ConnectorRun) -> Request[ConnectorRun]:
        """The run as it is now."""
        return self._run(run)

    @operation
    def cancel_run(self, run: ConnectorRun) -> Request[ConnectorRun]:
        path = self._path("connectors", run.connector, "runs", run.id, "cancel")
        return Request("POST", path, ObjectReader(ConnectorRun))

    @flow_operation
    def wait(
        self, run: ConnectorRun, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[ConnectorRun]:
        """Wait until it has ended. Raises JobFailed where it failed, TimeoutError after `timeout` seconds."""
        name = f"run {run.id} of connector {run.connector}"
        return wait_for(self._run(run), name=name, timeout=timeout, progress=progress)

    def _run(self, run: ConnectorRun) -> Request[ConnectorRun]:
        path = self._path("connectors", run.connector, "runs", run.id)
        return Request("GET", path, ObjectReader(ConnectorRun))

    @list_operation
    def runs(self, connector: int | Connector, *, page_size: int | None = None) -> Pages[ConnectorRun]:
        """Newest first."""
        path = self._path("connectors", connector, "runs")
        return Pages(path, ObjectReader(ConnectorRun), page_size=page_size)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Connector]:
        """Newest first."""
        return Pages(self._path("connectors"), ObjectReader(Connector), page_size=page_size)
