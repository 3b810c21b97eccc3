"""What a kind of feedback has to say for itself: its rows, its form, its records, how agreement on it is measured."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

from django import forms
from django.db import models

from apps.annotation.models import Annotation, FeedbackRecord
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from workers import schema
from workers.schema import Kind, TrajectoryId
from workers.schema.patterns import TextPattern

SIDES: tuple[str, ...] = ("left", "right", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
LETTERS = "ABCDEFGH"
Fields = Mapping[str, str]
Level = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the annotator sees: the item's trajectories by stored position, and the order they are shown in.

    order: the stored position of each place, from left to right. Forms speak of places (SIDES), rows of positions.
    criteria, options: of the campaign.
    """

    trajectories: Sequence[Trajectory]
    order: Sequence[int]
    criteria: Sequence[Criterion] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def sides(self) -> tuple[str, ...]:
        return SIDES[: len(self.trajectories)]

    def position(self, side: int) -> int:
        """The stored position of a shown place."""
        return self.order[side]

    def on_side(self, side: int) -> Trajectory:
        return self.trajectories[self.order[side]]

    def side_of(self, trajectory_id: int) -> int:
        ids = [trajectory.pk for trajectory in self.trajectories]
        return list(self.order).index(ids.index(trajectory_id))

    def option(self, kind: Kind, name: str, default: str) -> str:
        """What the campaign chose for a kind."""
        return self.options.get(kind, {}).get(name) or default


@dataclass(frozen=True, slots=True)
class Option:
    """One answer of a question. key: presses it. name: in full, for screen readers and the help.

    side: the run it favours ("left", "right"), or "none".
    """

    value: str
    words: str
    name: str
    key: str = ""
    side: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asked in the decision bar: radio buttons under one name. note: the field for words beside the answer."""

    name: str
    title: str
    options: Sequence[Option]
    short: str = ""
    value: str = ""
    criterion: Criterion | None = None
    note: str = ""
    note_value: str = ""
    is_titled: bool = True  # whether the title is seen, or only heard


@dataclass(frozen=True, slots=True)
class Stored:
    """Where an imported record's trajectories are: the rows in its order, and the position of each in the item."""

    trajectories: Sequence[Trajectory]
    positions: Sequence[int]
    criterion: Callable[[str, str | None, tuple[float, float] | None], Criterion]  # name, definition, scale


@dataclass(frozen=True, slots=True)
class Answer:
    """What agreement is measured on. unit: what was judged, within the item. question: None is the kind's own."""

    annotator: str
    item: int
    unit: Hashable
    value: float
    level: Level
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a record says of one trajectory, as OpenTelemetry's `gen_ai.evaluation.result` tells it. about: the rest."""

    trajectory: schema.Trajectory
    name: str
    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


Place = Callable[[Any, str], schema.Trajectory | TrajectoryId]  # an ITEM and its pointer, read
WriteItem = Callable[[schema.Trajectory], dict[str, Any]]  # a trajectory, as an export writes it
Read = tuple[tuple[schema.Trajectory | TrajectoryId, ...], Any]


Row = TypeVar("Row", bound=FeedbackRecord)
Value = TypeVar("Value")  # of a record that is imported
Record = TypeVar("Record", bound=schema.FeedbackRecord)


class FeedbackType(ABC, Generic[Row, Value, Record]):
    """One type of feedback: its rows, its form, its records, and how agreement on it is measured.

    A new type is a subclass in a module here, a line in `apps.annotation.feedback_types.KINDS`, and a table
    for its rows in `apps.annotation.models.feedback`.
    """

    name: ClassVar[Kind]
    label: ClassVar[str]
    question: ClassVar[str]
    about: ClassVar[str]
    model: ClassVar[type[FeedbackRecord]]
    related: ClassVar[tuple[str, ...]] = ()  # relations of a row that are read with it
    # Trajectories of an item.
    fewest: ClassVar[int]
    most: ClassVar[int]
    # The form: names of its fields, choices of a campaign, its part of the decision bar and of every agent step.
    names: ClassVar[TextPattern]
    options: ClassVar[Mapping[str, forms.ChoiceField]] = {}
    template: ClassVar[str] = "annotation/feedback_types/_questions.html"
    card_template: ClassVar[str] = ""
    # Records: the import format, its own keys, and those of them that no other type's record has.
    format: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    tells: ClassVar[tuple[str, ...]]

    @abstractmethod
    def parse(self, fields: Fields, shown: Shown) -> list[Row]:
        """Rows, not saved yet, of posted fields or of a draft. Raises DomainError."""

    @abstractmethod
    def form_values(self, rows: Sequence[Any], shown: Shown) -> dict[str, str]:
        """The fields that `parse` reads as these rows."""

    @abstractmethod
    def validate(self, rows: Sequence[Any], shown: Shown, alone: bool) -> None:
        """Whether the form is complete. alone: it asks for nothing else. Raises DomainError."""

    @abstractmethod
    def summary(self, rows: Sequence[Any], shown: Shown) -> str:
        """The rows in words."""

    def questions(self, fields: Fields, shown: Shown) -> list[Question]:
        """What is asked in the decision bar."""
        return []

    def needs_criteria(self, options: Mapping[str, Any]) -> bool:
        """Whether a campaign with these options needs a rubric."""
        return False

    @abstractmethod
    def read_record(self, record: dict[str, Any], place: Place) -> Read:
        """The trajectories and the value of an imported record. Raises InvalidRecord."""

    def check_record(self, value: Value, rows: Sequence[Trajectory]) -> None:
        """Whether the value fits the stored trajectories. Raises InvalidRecord."""

    @abstractmethod
    def make_row(self, value: Value, stored: Stored) -> Row:
        """A row, not saved yet, of an imported value."""

    @abstractmethod
    def to_record(
        self,
        row: Row,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> Record:
        """The record of a row. places: trajectories by stored position; of: by primary key."""

    @abstractmethod
    def to_json(self, record: Record, item: WriteItem) -> dict[str, Any]:
        """The record's own keys in an export; item writes a trajectory."""

    @abstractmethod
    def evaluations(self, record: Record) -> Iterator[Evaluation]:
        """The record as evaluations of single trajectories."""

    @abstractmethod
    def agreement_values(self, rows: models.QuerySet[Any]) -> Iterator[Answer]:
        """What agreement is measured on."""

    def rows_of(self, annotation: Annotation) -> list[Row]:
        return list(self._with_related().filter(annotation=annotation))

    def save(self, annotation: Annotation, judgements: Sequence[FeedbackRecord]) -> None:
        rows = mine(judgements, self.model)
        for row in rows:
            row.annotation = annotation
        self.all_rows().bulk_create(rows)

    @property
    def prefetch(self) -> "models.Prefetch[Any]":
        """The rows of many annotations, with all that `to_record` needs."""
        return models.Prefetch(self.related_name, self._with_related())

    @property
    def related_name(self) -> str:
        """Of an annotation's rows of this type."""
        return f"{self.model._meta.model_name}s"

    def all_rows(self) -> models.QuerySet[Any]:
        return self.model._default_manager.all()

    def _with_related(self) -> models.QuerySet[Any]:
        rows = self.all_rows().order_by("pk")
        return rows.select_related(*self.related) if self.related else rows


AnyFeedbackType = FeedbackType[Any, Any, Any]


def mine(rows: Sequence[Any], model: type[Row]) -> list[Row]:
    return [row for row in rows if isinstance(row, model)]


def chosen(fields: Fields, name: str, allowed: Sequence[str], what: str) -> str:
    """The value of a radio group, "" where nothing is chosen. Raises DomainError for one it does not have."""
    value = fields.get(name, "")
    if value and value not in allowed:
        raise DomainError(f"{value!r} is no {what}; choose one of {', '.join(allowed)}.", pointer=f"/{name}")
    return value
