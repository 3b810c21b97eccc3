"""`client.bulk_jobs`: stored trajectories scored, embedded or judged by the million. Scope `train`."""

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
from touchstone_client.filters import FilterValue, filter_query
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Lines, Pages
from touchstone_client.progress import Progress


@api_object
class BulkEstimate(ApiObject):
    """seconds: of one worker, None where the engine has done nothing yet. cost: in the currency of the prices of the
    judge's connection, None where none is known. basis: what both are taken from."""

    items: int
    tokens: int = 0
    seconds: float | None = None
    cost: float | None = None
    basis: str = ""


@api_object
class BulkJob(ApiObject):
    """state: running, paused, succeeded, failed or cancelled. done: items with a result or a problem, or deleted
    meanwhile (missing). per_second: items of all workers."""

    id: int
    work: str
    state: str
    number: int = 0
    model: str | None = None
    judge: str | None = None
    induction: int | None = None
    endpoint: str | None = None
    filter: str = ""
    steps: bool = False
    error: str = ""
    progress: JobProgress = JobProgress()
    items: int = 0
    done: int = 0
    problems: int = 0
    missing: int = 0
    tokens: int = 0
    failed_chunks: int = 0
    per_second: float = 0.0
    tokens_per_second: float = 0.0
    seconds_left: float | None = None
    created: datetime | None = None
    finished: datetime | None = None


class BulkJobs(Calls[DriverT]):
    @operation
    def create(
        self,
        work: str,
        *,
        model: str | None = None,
        judge: str | None = None,
        induction: int | None = None,
        endpoint: str | None = None,
        filter: FilterValue | None = None,
        steps: bool | None = None,
    ) -> Request[BulkJob]:
        """work: score or embed, by a model; judge, by a judge; induce, by the metrics of an induction;
        endpoint, by an endpoint. filter: as the
        trajectory list's address has it, such as `agent=desk&success=no`, or a mapping of its conditions; by default
        all trajectories, as they are now. steps: keep rewards of agent steps."""
        body = {
            "work": work,
            **given(
                model=model,
                judge=judge,
                induction=induction,
                endpoint=endpoint,
                filter=filter_query(filter),
                steps=steps,
            ),
        }
        return Request("POST", self._path("bulk-jobs"), ObjectReader(BulkJob), json=body)

    @operation
    def estimate(
        self,
        work: str,
        *,
        model: str | None = None,
        judge: str | None = None,
        induction: int | None = None,
        endpoint: str | None = None,
        filter: FilterValue | None = None,
    ) -> Request[BulkEstimate]:
        """How many trajectories, how long and what it costs."""
        body = {
            "work": work,
            **given(
                model=model, judge=judge, induction=induction, endpoint=endpoint, filter=filter_query(filter)
            ),
        }
        return Request("POST", self._path("bulk-jobs", "estimate"), ObjectReader(BulkEstimate), json=body)

    @operation
    def get(self, job: int | BulkJob) -> Request[BulkJob]:
        return Request("GET", self._path("bulk-jobs", job), ObjectReader(BulkJob))

    @operation
    def pause(self, job: int | BulkJob) -> Request[BulkJob]:
        return Request("POST", self._path("bulk-jobs", job, "pause"), ObjectReader(BulkJob))

    @operation
    def resume(self, job: int | BulkJob) -> Request[BulkJob]:
        """One that is paused or failed."""
        return Request("POST", self._path("bulk-jobs", job, "resume"), ObjectReader(BulkJob))

    @operation
    def retry(self, job: int | BulkJob) -> Request[BulkJob]:
        """Work again on items whose result is a problem."""
        return Request("POST", self._path("bulk-jobs", job, "retry"), ObjectReader(BulkJob))

    @operation
    def cancel(self, job: int | BulkJob) -> Request[BulkJob]:
        """It cannot be resumed; the results so far are kept."""
        return Request("POST", self._path("bulk-jobs", job, "cancel"), ObjectReader(BulkJob))

    @flow_operation
    def wait(
        self, job: int | BulkJob, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[BulkJob]:
        """Wait until it has ended. Raises JobFailed unless it succeeded, TimeoutError after `timeout` seconds."""
        number = job if isinstance(job, int) else job.id
        request = Request("GET", self._path("bulk-jobs", job), ObjectReader(BulkJob))
        return wait_for(request, name=f"bulk job {number}", timeout=timeout, progress=progress)

    @list_operation
    def results(self, job: int | BulkJob, *, problems: bool = False) -> Lines[dict[str, Any]]:
        """{trajectory, external_id, task, reward, ...} of each trajectory, in their order; what there is so far.
        problems: only those without a result."""
        return Lines(self._path("bulk-jobs", job, "results"), dict, {"problems": problems or None})

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[BulkJob]:
        """Newest first."""
        return Pages(self._path("bulk-jobs"), ObjectReader(BulkJob), page_size=page_size)
