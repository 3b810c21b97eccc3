"""What a kind of feedback has to say for itself: its rows, its form, its records, how agreement on it is measured."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from django import forms
from django.db import models

from apps.annotation.models import Judgement, Submission
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
Read = tuple[tuple[schema.Trajectory | TrajectoryId, ...], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One kind. Functions of a form take fields and Shown; those of records are the ends of import and export.

    template: its part of the decision bar; card_template: its part of every agent step.
    fewest, most: trajectories of an item. names: the form's fields. needs_criteria: asks by the campaign's rubric.
    """

    name: Kind
    label: str
    question: str
    about: str
    model: type[Any]
    fewest: int
    most: int
    # The form: posted fields or a draft to unsaved rows, and back; whether enough is said; what was said, in words.
    names: TextPattern
    parse: Callable[[Fields, Shown], list[Any]]
    fields: Callable[[Sequence[Any], Shown], dict[str, str]]
    check: Callable[[Sequence[Any], Shown, bool], None]
    words: Callable[[Sequence[Any], Shown], str]
    questions: Callable[[Fields, Shown], list[Question]] = lambda fields, shown: []
    template: str = "annotation/kinds/_questions.html"
    card_template: str = ""
    options: Mapping[str, forms.ChoiceField] = field(default_factory=dict)
    needs_criteria: Callable[[Mapping[str, Any]], bool] = lambda options: False
    # Records: the import format and its own keys; a record to a value, a value to a row, a row to a record, and out.
    # tells: keys of its own that no other kind's record has.
    format: str
    keys: tuple[str, ...]
    tells: tuple[str, ...]
    read: Callable[[dict[str, Any], Place], Read]
    fits: Callable[[Any, Sequence[Trajectory]], None] = lambda value, rows: None
    row: Callable[[Any, Stored], Any]
    record: Callable[[Any, Sequence[schema.Trajectory], dict[int, schema.Trajectory], dict[str, Any]], Any]
    line: Callable[[Any, Callable[[schema.Trajectory], Any]], dict[str, Any]]
    evaluations: Callable[[Any], Iterator[Evaluation]]
    # Agreement, of the rows that count.
    answers: Callable[[models.QuerySet[Any]], Iterator[Answer]]
    # Relations of a row that are read with it.
    related: tuple[str, ...] = ()

    def of(self, submission: Submission) -> list[Any]:
        rows = self.model.objects.filter(submission=submission).order_by("pk")
        return list(rows.select_related(*self.related) if self.related else rows)

    def save(self, submission: Submission, judgements: Sequence[Judgement]) -> None:
        rows = mine(judgements, self.model)
        for row in rows:
            row.submission = submission
        self.model.objects.bulk_create(rows)

    @property
    def prefetch(self) -> "models.Prefetch[Any]":
        """The rows of many submissions, with all that `record` needs."""
        rows = self.model.objects.order_by("pk")
        return models.Prefetch(
            self.related_name, rows.select_related(*self.related) if self.related else rows
        )

    @property
    def related_name(self) -> str:
        """Of a submission's rows of this kind."""
        return f"{self.model._meta.model_name}s"


Row = TypeVar("Row", bound=Judgement)


def mine(rows: Sequence[Any], model: type[Row]) -> list[Row]:
    return [row for row in rows if isinstance(row, model)]


def chosen(fields: Fields, name: str, allowed: Sequence[str], what: str) -> str:
    """The value of a radio group, "" where nothing is chosen. Raises DomainError for one it does not have."""
    value = fields.get(name, "")
    if value and value not in allowed:
        raise DomainError(f"{value!r} is no {what}; choose one of {', '.join(allowed)}.", pointer=f"/{name}")
    return value
