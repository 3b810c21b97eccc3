"""`client.retention`: after how many days a project's data is deleted. `client.exports`: archives of all its data.
Scope `admin`."""

from dataclasses import field
from datetime import datetime
from typing import Any

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Flow,
    Request,
    flow_operation,
    given,
    list_operation,
    operation,
)
from touchstone_client.jobs import wait_for
from touchstone_client.listings import Lines, Pages
from touchstone_client.progress import Progress


@api_object
class RetentionCounts(ApiObject):
    """in_datasets, in_campaigns: old trajectories that are kept. in_datasets None: not counted; then at most
    `trajectories` are deleted."""

    trajectories: int = 0
    in_datasets: int | None = 0
    in_campaigns: int = 0
    samples: int = 0
    exports: int = 0


@api_object
class RetentionRules(ApiObject):
    """Days, None: never. applied: when they were last. would_delete: if they were applied now."""

    trajectory_days: int | None = None
    sample_days: int | None = None
    export_days: int | None = None
    applied: datetime | None = None
    would_delete: RetentionCounts = RetentionCounts()


class Retention(Calls[DriverT]):
    @operation
    def get(self) -> Request[RetentionRules]:
        return Request("GET", self._path("retention"), ObjectReader(RetentionRules))

    @operation
    def set(
        self,
        *,
        trajectory_days: int | None = None,
        sample_days: int | None = None,
        export_days: int | None = None,
        preview: bool | None = None,
    ) -> Request[RetentionRules]:
        """All rules at once: days that are left out mean never. Applied at once, then daily. preview: only count."""
        body = given(
            trajectory_days=trajectory_days,
            sample_days=sample_days,
            export_days=export_days,
            preview=preview,
        )
        return Request("PUT", self._path("retention"), ObjectReader(RetentionRules), json=body)


@api_object
class ProjectExport(ApiObject):
    """An archive. available: whether its file can be downloaded. size: in bytes. contents: rows in it, by kind."""

    id: int
    state: str = ""
    available: bool = False
    error: str = ""
    size: int = 0
    contents: dict[str, int] = field(default_factory=dict)
    created: datetime | None = None
    finished: datetime | None = None

    def __str__(self) -> str:
        return str(self.id)


class ProjectExports(Calls[DriverT]):
    @operation
    def start(self) -> Request[ProjectExport]:
        """Have a worker write an archive of the project; one that is being written is returned. Follow it with `wait`,
        then write it with `file(export).download(path)`."""
        return Request("POST", self._path("exports"), _read_export)

    @operation
    def get(self, export: int | str | ProjectExport) -> Request[ProjectExport]:
        return Request("GET", self._path("exports", export), _read_export)

    @flow_operation
    def wait(
        self, export: int | str | ProjectExport, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[ProjectExport]:
        """Wait until the file is there. Raises JobFailed where it failed, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._path("exports", export), _read_export)
        return wait_for(request, name=f"archive {export}", timeout=timeout, progress=progress)

    @list_operation
    def file(self, export: int | str | ProjectExport) -> Lines[dict[str, Any]]:
        """Its zip file, which `.download(path)` writes."""
        return Lines(self._path("exports", export, "file"), dict)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[ProjectExport]:
        """Newest first."""
        return Pages(self._path("exports"), _read_export, page_size=page_size)


_read_export = ObjectReader(ProjectExport)
