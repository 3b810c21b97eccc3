"""The base class of feedback types, and the values they exchange with forms, records and agreement."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from django import forms
from django.db import models

from apps.annotation.models import Annotation, FeedbackRecord
from apps.annotation.presentation import FormFields, PresentedItem
from apps.rubrics.models import Criterion
from apps.trajectories.models import Trajectory
from workers import schema
from workers.schema import Kind, TrajectoryId
from workers.schema.patterns import TextPattern

Level = Literal["nominal", "ordinal", "interval", "set"]  # set: of categories


@dataclass(frozen=True, slots=True)
class Option:
    """One answer of a question. key: its keyboard key. name: full text, for screen readers and the help.

    side: the trajectory it favours ("left", "right"), or "none". point: the name of a point of a scale.
    """

    value: str
    words: str
    name: str
    key: str = ""
    side: str = ""
    point: str = ""


@dataclass(frozen=True, slots=True)
class CheckboxOption:
    """One of several answers that can be chosen together. name: of its form field. about: its definition."""

    name: str
    words: str
    key: str = ""
    about: str = ""
    is_checked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A group of radio buttons in the panel. note: name of the text field next to the answer.

    place: the trajectory it asks about, by its place from left to right; None: all of the item. heading: the title
    below the name of that trajectory. about: what all questions of the type ask.
    checkboxes: answers that can be chosen together; the options are then those that exclude them.
    """

    name: str
    title: str
    options: Sequence[Option]
    short: str = ""
    value: str = ""
    criterion: Criterion | None = None
    note: str = ""
    note_value: str = ""
    place: int | None = None
    heading: str = ""
    about: str = ""
    checkboxes: Sequence[CheckboxOption] = ()

    @property
    def is_listed(self) -> bool:
        """Whether its answers have names, so that each is a line."""
        return any(option.point for option in self.options) or any(box.about for box in self.checkboxes)


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """Stored trajectories of an imported record, in its order, and the position of each in the item."""

    trajectories: Sequence[Trajectory]
    positions: Sequence[int]
    criterion: Callable[[str, str | None, tuple[float, float] | None], Criterion]  # name, definition, scale
    # name, definition, type of answers, categories
    categorical_criterion: Callable[[str, str | None, str, tuple[str, ...]], Criterion]


class AgreementValue(msgspec.Struct, frozen=True):
    """A value that agreement is measured on. unit: within the item. question: None is the type's main question.

    categories: the names that the value stands for, where the answer is a set of categories.
    """

    annotator: str
    item: int
    unit: Hashable
    value: float
    level: Level
    question: str | None = None
    categories: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class TrajectoryEvaluation:
    """A record about one trajectory, as OpenTelemetry's `gen_ai.evaluation.result`. about: other attributes."""

    trajectory: schema.Trajectory
    name: str
    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


Place = Callable[[Any, str], schema.Trajectory | TrajectoryId]  # an ITEM and its pointer, read
TrajectoryWriter = Callable[[schema.Trajectory], dict[str, Any]]  # a trajectory, as an export writes it
ReadRecord = tuple[tuple[schema.Trajectory | TrajectoryId, ...], Any]


Row = TypeVar("Row", bound=FeedbackRecord)
Value = TypeVar("Value")  # of a record that is imported
Record = TypeVar("Record", bound=schema.FeedbackRecord)


class FeedbackType(ABC, Generic[Row, Value, Record]):
    """One type of feedback: its rows, its form, its records, and how agreement on it is measured.

    A new type is a subclass in a module here, a line in `apps.annotation.feedback_types.FEEDBACK_TYPES`, and a table
    for its rows in `apps.annotation.models.feedback`.
    """

    name: ClassVar[Kind]
    label: ClassVar[str]
    question: ClassVar[str]
    description: ClassVar[str]
    model: ClassVar[type[FeedbackRecord]]
    select_related_fields: ClassVar[tuple[str, ...]] = ()  # relations loaded with a row
    # Trajectories of an item.
    min_trajectories: ClassVar[int]
    max_trajectories: ClassVar[int]
    # The form: names of its fields, choices of a campaign, its part of the panel and of every agent step.
    field_pattern: ClassVar[TextPattern]
    options: ClassVar[Mapping[str, forms.ChoiceField]] = {}
    template: ClassVar[str] = "annotation/feedback_types/_questions.html"
    card_template: ClassVar[str] = ""
    # Answers of the criteria that it asks, of Criterion.AnswerType.
    answer_types: ClassVar[tuple[str, ...]] = ()
    # Records: the import format, its own keys, and those of them that no other type's record has.
    import_format: ClassVar[str]
    record_keys: ClassVar[tuple[str, ...]]
    distinguishing_keys: ClassVar[tuple[str, ...]]

    @abstractmethod
    def parse(self, fields: FormFields, shown: PresentedItem) -> list[Row]:
        """Rows, not saved yet, of posted fields or of a draft. Raises DomainError."""

    @abstractmethod
    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        """The fields that `parse` reads as these rows."""

    @abstractmethod
    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        """Check that the form is complete. alone: it has no other feedback type. Raises DomainError."""

    @abstractmethod
    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        """The rows as text."""

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        """Questions in the panel."""
        return []

    def needs_criteria(self, options: Mapping[str, Any]) -> bool:
        """Whether a campaign with these options needs a rubric with a criterion of `answer_types`."""
        return False

    @abstractmethod
    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        """The trajectories and the value of an imported record. Raises InvalidRecord."""

    def check_record(self, value: Value, rows: Sequence[Trajectory]) -> None:
        """Check the value against the stored trajectories. Raises InvalidRecord."""

    @abstractmethod
    def make_row(self, value: Value, stored: ImportTarget) -> Row:
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
    def to_json(self, record: Record, item: TrajectoryWriter) -> dict[str, Any]:
        """The record's own keys in an export; item writes a trajectory."""

    @abstractmethod
    def evaluations(self, record: Record) -> Iterator[TrajectoryEvaluation]:
        """The record as evaluations of single trajectories."""

    @abstractmethod
    def agreement_values(self, rows: models.QuerySet[Any]) -> Iterator[AgreementValue]:
        """Values that agreement is measured on."""

    def load_records(self, annotation: Annotation) -> list[Row]:
        return list(self._with_related().filter(annotation=annotation))

    @property
    def prefetch(self) -> "models.Prefetch[Any]":
        """Rows of many annotations, with the relations that `to_record` needs, as lists: see `prefetched_rows`."""
        return models.Prefetch(self.related_name, self._with_related(), to_attr=self._rows_attribute)

    def prefetched_rows(self, annotation: "Annotation") -> list[Any]:
        """Of an annotation that was read with `prefetch`; a list costs a tenth of the relation's query set."""
        rows: list[Any] = getattr(annotation, self._rows_attribute)
        return rows

    @property
    def _rows_attribute(self) -> str:
        return f"prefetched_{self.related_name}"

    @property
    def related_name(self) -> str:
        """The relation from an annotation to its rows of this type."""
        return f"{self.model._meta.model_name}s"

    def all_rows(self) -> models.QuerySet[Any]:
        return self.model._default_manager.all()

    def _with_related(self) -> models.QuerySet[Any]:
        rows = self.all_rows().order_by("pk")
        return rows.select_related(*self.select_related_fields) if self.select_related_fields else rows


AnyFeedbackType = FeedbackType[Any, Any, Any]


def records_of_type(rows: Sequence[Any], model: type[Row]) -> list[Row]:
    return [row for row in rows if isinstance(row, model)]
