"""`client.hindsight_tasks`: what trajectories did, as tasks, proposed by a language model and accepted by a person.

Scope `admin`."""

from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

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


@api_object
class HindsightTask(ApiObject):
    """Of a trajectory. asked: the instruction of its task. task: what it did. accepted: the text that is used, empty
    where no person has accepted any. state: proposed, accepted or rejected."""

    id: int
    trajectory: int = 0
    asked: str = ""
    task: str = ""
    evidence: list[int] = field(default_factory=list)
    accepted: str = ""
    state: str = ""
    changed: datetime | None = None
    decided: datetime | None = None


@api_object
class HindsightProposal(ApiObject):
    """number: within the project. trajectories: how many get a text. result: once it has ended; problems: why a
    trajectory got none."""

    id: int
    number: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    trajectories: int = 0
    state: str = ""
    progress: JobProgress = JobProgress()
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    finished: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("options", "result")


class HindsightTasks(Calls[DriverT]):
    @operation
    def propose(
        self, llm_connection: str, *, filter: str | None = None, most: int | None = None
    ) -> Request[HindsightProposal]:
        """Have a language model write which tasks trajectories fulfilled, for those without any. filter: of them.
        most: the newest (50)."""
        body = {"llm_connection": llm_connection, **given(filter=filter, most=most)}
        return Request("POST", self._path("hindsight-proposals"), ObjectReader(HindsightProposal), json=body)

    @operation
    def proposal(self, proposal: int | HindsightProposal) -> Request[HindsightProposal]:
        return Request("GET", self._proposal(proposal), ObjectReader(HindsightProposal))

    @operation
    def cancel(self, proposal: int | HindsightProposal) -> Request[HindsightProposal]:
        return Request("POST", self._proposal(proposal, "cancel"), ObjectReader(HindsightProposal))

    @flow_operation
    def wait(
        self, proposal: int | HindsightProposal, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[HindsightProposal]:
        """Wait until it ends. Raises JobFailed unless that succeeded, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._proposal(proposal), ObjectReader(HindsightProposal))
        name = f"proposal {_key(proposal)} of hindsight tasks"
        return wait_for(request, name=name, timeout=timeout, progress=progress)

    @operation
    def get(self, hindsight_task: int | HindsightTask) -> Request[HindsightTask]:
        return Request("GET", self._task(hindsight_task), ObjectReader(HindsightTask))

    @operation
    def edit(self, hindsight_task: int | HindsightTask, task: str) -> Request[HindsightTask]:
        """A person has to accept it again."""
        return Request("PUT", self._task(hindsight_task), ObjectReader(HindsightTask), json={"task": task})

    @operation
    def accept(self, hindsight_task: int | HindsightTask) -> Request[HindsightTask]:
        """The trajectory has reached it from now on. It takes a member's key."""
        return Request("POST", self._task(hindsight_task, "accept"), ObjectReader(HindsightTask))

    @operation
    def reject(self, hindsight_task: int | HindsightTask) -> Request[HindsightTask]:
        """It takes a member's key."""
        return Request("POST", self._task(hindsight_task, "reject"), ObjectReader(HindsightTask))

    @list_operation
    def list(self, *, state: str | None = None, page_size: int | None = None) -> Pages[HindsightTask]:
        """Newest first. state: proposed, accepted or rejected."""
        path = self._path("hindsight-tasks")
        return Pages(path, ObjectReader(HindsightTask), params=given(state=state), page_size=page_size)

    def _task(self, hindsight_task: int | HindsightTask, *rest: str) -> str:
        return self._path("hindsight-tasks", _key(hindsight_task), *rest)

    def _proposal(self, proposal: int | HindsightProposal, *rest: str) -> str:
        return self._path("hindsight-proposals", _key(proposal), *rest)


def _key(row: int | HindsightTask | HindsightProposal) -> int:
    return row if isinstance(row, int) else row.id
