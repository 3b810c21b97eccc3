"""`client.metrics` and `client.inductions`: criteria induced from comments. Scope `train`."""

from datetime import datetime
from typing import ClassVar

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
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress
from touchstone_client.resources.campaigns import Campaign


@api_object
class Metric(ApiObject):
    """A metric in use. state: proposed, accepted, rejected or merged. criterion: what it became of a rubric."""

    id: int
    name: str
    definition: str = ""
    state: str = ""
    induction: int | None = None
    criterion: str | None = None
    praised: int = 0
    blamed: int = 0
    kept: int = 0
    violated: int = 0
    judged: int = 0

    HIDDEN: ClassVar[tuple[str, ...]] = ("definition",)


@api_object
class Aspect(ApiObject):
    """What one comment says of a behaviour. sign: 1 for praise, -1 for blame. trajectory, step, comment: where."""

    feedback: str
    behaviour: str = ""
    sign: int = 0
    trajectory: int | None = None
    step: int | None = None
    comment: int | None = None


@api_object
class InducedMetric(ApiObject):
    """good, bad: examples. degenerate: why it distinguishes nothing, empty where it does."""

    name: str
    definition: str = ""
    degenerate: str = ""
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    aspects: tuple[Aspect, ...] = ()


@api_object
class HeldOut(ApiObject):
    """Coverage and redundancy on `n` comments that the induction did not read."""

    n: int
    coverage: float | None = None
    redundancy: float | None = None


@api_object
class Induction(ApiObject):
    """induction: its number. metrics: of `get`, and of `wait`."""

    induction: int
    state: str
    campaign: str | None = None
    number: int = 0
    engine: str = ""
    llm_connection: str | None = None
    seed: int = 0
    progress: JobProgress = JobProgress()
    error: str = ""
    coverage: float | None = None
    redundancy: float | None = None
    held_out: HeldOut | None = None
    warnings: tuple[str, ...] = ()
    created: datetime | None = None
    started: datetime | None = None
    finished: datetime | None = None
    metrics: tuple[InducedMetric, ...] = ()

    def __str__(self) -> str:
        return str(self.induction)


class Metrics(Calls[DriverT]):
    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Metric]:
        """Those in use."""
        return Pages(self._path("metrics"), ObjectReader(Metric), page_size=page_size)


class Inductions(Calls[DriverT]):
    @operation
    def start(
        self,
        *,
        campaign: str | Campaign | None = None,
        llm_connection: str | None = None,
        seed: int | None = None,
    ) -> Request[Induction]:
        """Induce metrics from comments, by default of all campaigns and with the embedded engine."""
        body = given(
            campaign=None if campaign is None else str(campaign), llm_connection=llm_connection, seed=seed
        )
        return Request("POST", self._path("inductions"), ObjectReader(Induction), json=body)

    @operation
    def get(self, induction: int | str | Induction) -> Request[Induction]:
        """With its metrics."""
        return Request("GET", self._path("inductions", induction), ObjectReader(Induction))

    @operation
    def cancel(self, induction: int | str | Induction) -> Request[Induction]:
        return Request("POST", self._path("inductions", induction, "cancel"), ObjectReader(Induction))

    @flow_operation
    def wait(
        self, induction: int | str | Induction, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[Induction]:
        """Wait until it has ended. Raises JobFailed where it failed, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._path("inductions", induction), ObjectReader(Induction))
        return wait_for(request, name=f"induction {induction}", timeout=timeout, progress=progress)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[Induction]:
        """Newest first."""
        return Pages(self._path("inductions"), ObjectReader(Induction), page_size=page_size)
