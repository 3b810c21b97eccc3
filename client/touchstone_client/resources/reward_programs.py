"""`client.reward_programs`: code that computes a reward, its versions and dry runs. Scope `admin`."""

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
    read_nothing,
)
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress


@api_object
class RewardProgram(ApiObject):
    """A version. name: `project/name@version`, as `program` of a component names it. origin: person or draft.
    deployable: whether an endpoint may use it: a person accepted it, and a dry run passed."""

    id: int
    name: str = ""
    version: int = 0
    code: str = ""
    code_hash: str = ""
    note: str = ""
    origin: str = ""
    created: datetime | None = None
    accepted: datetime | None = None
    dry_run_passed: datetime | None = None
    deployable: bool = False

    HIDDEN: ClassVar[tuple[str, ...]] = ("code",)


@api_object
class RewardProgramJob(ApiObject):
    """number: within the project. kind: dry_run or draft. program: the version that it tried, or drafted. result: once
    it has succeeded; of a dry run, `passed` says whether the version may be deployed."""

    id: int
    number: int = 0
    kind: str = ""
    state: str = ""
    program: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    progress: JobProgress = JobProgress()
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    finished: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("options", "result")


class RewardPrograms(Calls[DriverT]):
    @operation
    def create(self, name: str, code: str, *, note: str | None = None) -> Request[RewardProgram]:
        """The next version of the program of this name."""
        body = {"name": name, "code": code, **given(note=note)}
        return Request("POST", self._path("reward-programs"), ObjectReader(RewardProgram), json=body)

    @operation
    def get(self, program: int | RewardProgram) -> Request[RewardProgram]:
        return Request("GET", self._program(program), ObjectReader(RewardProgram))

    @operation
    def delete(self, program: int | RewardProgram) -> Request[None]:
        """A version that no endpoint serves."""
        return Request("DELETE", self._program(program), read_nothing)

    @operation
    def accept(self, program: int | RewardProgram) -> Request[RewardProgram]:
        """A draft that a person has read. It takes a member's key."""
        return Request("POST", self._program(program, "accept"), ObjectReader(RewardProgram))

    @operation
    def dry_run(
        self,
        program: int | RewardProgram,
        *,
        filter: str | None = None,
        sample: int | None = None,
        seconds: float | None = None,
    ) -> Request[RewardProgramJob]:
        """On stored trajectories. filter: which, all by default. sample: how many at most (200). seconds: for each."""
        body = given(filter=filter, sample=sample, seconds=seconds)
        return Request("POST", self._program(program, "dry-runs"), ObjectReader(RewardProgramJob), json=body)

    @operation
    def draft(
        self,
        name: str,
        *,
        llm_connection: str,
        task: str,
        comments: str | None = None,
        filter: str | None = None,
        revises: int | RewardProgram | None = None,
        stored_comments: bool | None = None,
        excerpts: bool | None = None,
    ) -> Request[RewardProgramJob]:
        """Have a language model write the next version; a person has to accept it. task: what the reward is to pay for.
        comments: of people, one on each line. filter: trajectories that drafts are tried on. revises: a version to
        revise by the comments. stored_comments: whether those stored on the trajectories count too. excerpts: whether
        the critic reads excerpts of trajectories (it does)."""
        chosen = None if revises is None else _key(revises)
        body = {
            "name": name,
            "llm_connection": llm_connection,
            "task": task,
            **given(
                comments=comments,
                filter=filter,
                revises=chosen,
                stored_comments=stored_comments,
                excerpts=excerpts,
            ),
        }
        return Request("POST", self._path("reward-program-drafts"), ObjectReader(RewardProgramJob), json=body)

    @operation
    def job(self, job: int | RewardProgramJob) -> Request[RewardProgramJob]:
        return Request("GET", self._job(job), ObjectReader(RewardProgramJob))

    @operation
    def cancel(self, job: int | RewardProgramJob) -> Request[RewardProgramJob]:
        return Request("POST", self._job(job, "cancel"), ObjectReader(RewardProgramJob))

    @flow_operation
    def wait(
        self, job: int | RewardProgramJob, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[RewardProgramJob]:
        """Wait until it ends. Raises JobFailed unless that succeeded, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._job(job), ObjectReader(RewardProgramJob))
        return wait_for(
            request, name=f"job {_key(job)} of a reward program", timeout=timeout, progress=progress
        )

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[RewardProgram]:
        """Versions, newest first."""
        return Pages(self._path("reward-programs"), ObjectReader(RewardProgram), page_size=page_size)

    def _program(self, program: int | RewardProgram, *rest: str) -> str:
        return self._path("reward-programs", _key(program), *rest)

    def _job(self, job: int | RewardProgramJob, *rest: str) -> str:
        return self._path("reward-program-jobs", _key(job), *rest)


def _key(row: int | RewardProgram | RewardProgramJob) -> int:
    return row if isinstance(row, int) else row.id
