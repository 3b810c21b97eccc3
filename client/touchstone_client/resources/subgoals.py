"""`client.subgoals`: subgoals of tasks, proposed by a language model and accepted by a person. Scope `admin`."""

import builtins
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
class SubgoalList(ApiObject):
    """Of a task. subgoals: {"goal", "expression", "weight"} each, what an item's `metadata.subgoals` takes. state:
    proposed, accepted or rejected."""

    id: int
    task: str = ""
    subgoals: list[dict[str, Any]] = field(default_factory=list)
    state: str = ""
    changed: datetime | None = None
    decided: datetime | None = None


@api_object
class SubgoalProposal(ApiObject):
    """number: within the project. tasks: how many get a list. result: once it has ended; problems: why a task got
    none."""

    id: int
    number: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    tasks: int = 0
    state: str = ""
    progress: JobProgress = JobProgress()
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    finished: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("options", "result")


class Subgoals(Calls[DriverT]):
    @operation
    def propose(
        self,
        llm_connection: str,
        *,
        filter: str | None = None,
        most: int | None = None,
        with_trajectories: bool | None = None,
    ) -> Request[SubgoalProposal]:
        """Have a language model list the subgoals of tasks without any. filter: trajectories, whose tasks these are.
        most: tasks (50). with_trajectories: whether it reads successful ones (it does)."""
        body = {
            "llm_connection": llm_connection,
            **given(filter=filter, most=most, with_trajectories=with_trajectories),
        }
        return Request("POST", self._path("subgoal-proposals"), ObjectReader(SubgoalProposal), json=body)

    @operation
    def proposal(self, proposal: int | SubgoalProposal) -> Request[SubgoalProposal]:
        return Request("GET", self._proposal(proposal), ObjectReader(SubgoalProposal))

    @operation
    def cancel(self, proposal: int | SubgoalProposal) -> Request[SubgoalProposal]:
        return Request("POST", self._proposal(proposal, "cancel"), ObjectReader(SubgoalProposal))

    @flow_operation
    def wait(
        self, proposal: int | SubgoalProposal, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[SubgoalProposal]:
        """Wait until it ends. Raises JobFailed unless that succeeded, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._proposal(proposal), ObjectReader(SubgoalProposal))
        return wait_for(
            request, name=f"proposal {_key(proposal)} of subgoals", timeout=timeout, progress=progress
        )

    @operation
    def get(self, subgoals: int | SubgoalList) -> Request[SubgoalList]:
        return Request("GET", self._list(subgoals), ObjectReader(SubgoalList))

    @operation
    def edit(self, subgoals: int | SubgoalList, rows: builtins.list[dict[str, Any]]) -> Request[SubgoalList]:
        """rows: {"goal", "expression", "weight"} each. A person has to accept them again."""
        return Request("PUT", self._list(subgoals), ObjectReader(SubgoalList), json={"subgoals": rows})

    @operation
    def accept(self, subgoals: int | SubgoalList) -> Request[SubgoalList]:
        """The component `subgoals` uses them from now on. It takes a member's key."""
        return Request("POST", self._list(subgoals, "accept"), ObjectReader(SubgoalList))

    @operation
    def reject(self, subgoals: int | SubgoalList) -> Request[SubgoalList]:
        """It takes a member's key."""
        return Request("POST", self._list(subgoals, "reject"), ObjectReader(SubgoalList))

    @list_operation
    def list(self, *, state: str | None = None, page_size: int | None = None) -> Pages[SubgoalList]:
        """Newest first. state: proposed, accepted or rejected."""
        path = self._path("subgoals")
        return Pages(path, ObjectReader(SubgoalList), params=given(state=state), page_size=page_size)

    def _list(self, subgoals: int | SubgoalList, *rest: str) -> str:
        return self._path("subgoals", _key(subgoals), *rest)

    def _proposal(self, proposal: int | SubgoalProposal, *rest: str) -> str:
        return self._path("subgoal-proposals", _key(proposal), *rest)


def _key(row: int | SubgoalList | SubgoalProposal) -> int:
    return row if isinstance(row, int) else row.id
