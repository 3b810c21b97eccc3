"""A kind of proposal: what differs between subgoals of tasks, hindsight tasks of trajectories, and others to come."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from django.db.models import Model, QuerySet

from apps.accounts.models import Project
from apps.llm.models import SpendingPurpose
from apps.proposals.models import ProposalJob, Proposed
from apps.trajectories.models import Trajectory

JobT = TypeVar("JobT", bound=ProposalJob)
RowT = TypeVar("RowT", bound=Proposed)


class ProposalOptionsLike(Protocol):
    """A frozen struct. filter: of trajectories. most: rows that get something."""

    @property
    def filter(self) -> str: ...
    @property
    def most(self) -> int: ...


class ProposalKind(ABC, Generic[JobT, RowT]):
    """One object of each kind serves its services, its executor and its pages."""

    job: type[JobT]
    proposed: type[RowT]
    about: type[Model]  # the rows that something is proposed for
    about_field: ClassVar[
        str
    ]  # of `proposed`, to such a row; the key of one in the lines of the child process
    related: ClassVar[tuple[str, ...]]  # what is read along with a row of `proposed`
    about_nouns: ClassVar[str]  # in the plural
    most: ClassVar[int]  # that many of them in a proposal
    advance: ClassVar[str]  # the Celery task, by its path
    verb: ClassVar[str]  # before the dot in the audit trail
    noun: ClassVar[str]  # what one row is: "a hindsight task", "subgoals"
    this: ClassVar[str]  # with its verb: "This hindsight task is"
    none_left: ClassVar[str]  # the error where no row of the filter needs anything
    child: ClassVar[str]  # the module of `workers` that asks
    asking: ClassVar[str]  # the note of its progress
    purpose: ClassVar[SpendingPurpose]

    @abstractmethod
    def choose(self, project: Project, trajectories: "QuerySet[Trajectory]", most: int) -> list[int]:
        """Keys of the rows of these trajectories for which nothing is accepted or waits for a person."""

    @abstractmethod
    def write_inputs(self, proposal: JobT, keys: list[int], folder: Path, check: Callable[[], None]) -> None:
        """What the child process reads about the rows, masked. check: to be called between slow steps."""

    @abstractmethod
    def values(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of `proposed` from a line of the child's `found.jsonl`."""

    @abstractmethod
    def use(self, own: RowT) -> None:
        """A person accepts `own`, which is locked and saved afterwards."""

    @abstractmethod
    def withdraw(self, own: RowT) -> None:
        """A person rejects `own`: what was accepted of it is used no longer."""

    @abstractmethod
    def audit(self, own: RowT) -> tuple[str, dict[str, Any]]:
        """The target and the data of a record in the audit trail."""
