"""Marks on agent steps: good, neutral or bad with a correction; or only the first error. Records: `steps`.

The form's fields are `step-SIDE-N` (a label; N is the agent_step, from 0) and `step-SIDE-N-correction`, or `first-SIDE`
(an agent_step, or `none`: no error). SIDE is `both` for the beginning two runs share, which is shown once: what is said
of it is said of both. An unmarked step is unknown, not neutral.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import QuerySet

from apps.annotation.feedback_types.base import (
    LETTERS,
    SIDES,
    Answer,
    Evaluation,
    FeedbackType,
    Fields,
    Option,
    Place,
    Question,
    Read,
    Shown,
    Stored,
    WriteItem,
    mine,
)
from apps.annotation.models import LABELS, StepLabelSet
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import clean
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern

BOTH, NONE = "both", "none"
FIRST_ERROR = "first_error"
LONGEST = 20_000
_SIDE = f"({'|'.join([*SIDES[:2], BOTH])})"
_MARK = TextPattern(rf"step-{_SIDE}-(\d{{1,6}})(-correction)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValue:
    labels: dict[int, str]
    corrections: dict[int, str]
    has_first_error: bool = False
    first_error: int | None = None


def asks_first_error(shown: Shown) -> bool:
    return shown.option("step", "mark", "labels") == FIRST_ERROR


def _places(side: str, shown: Shown) -> Sequence[int]:
    return range(len(shown.trajectories)) if side == BOTH else [SIDES.index(side)]


def _parse_labels(fields: Fields, shown: Shown, rows: list[StepLabelSet]) -> None:
    for name, value in fields.items():
        if (match := _MARK.fullmatch(name)) is None or not value:
            continue
        for place in _places(match[1], shown):
            step = _step(match[2], place, shown, name)
            if match[3]:
                if text := clean(value.strip())[0]:
                    rows[place].corrections[str(step)] = _short(text, name)
            elif value in LABELS:
                rows[place].labels[str(step)] = value
            else:
                raise DomainError(
                    f"{value!r} is no label; a step is good, neutral or bad.", pointer=f"/{name}"
                )
    for place, row in enumerate(rows):
        bare = next((step for step in row.corrections if step not in row.labels), None)
        if bare is not None:
            raise DomainError(
                f"Step {bare} of {LETTERS[place]} has a correction but no label; mark it too.",
                pointer=f"/step-{SIDES[place]}-{bare}",
            )


def _parse_first_error(fields: Fields, shown: Shown, rows: list[StepLabelSet]) -> None:
    """The earliest that was marked; an error in the shared beginning is the first one of both."""
    for side in (*shown.sides, BOTH):
        said = fields.get(f"first-{side}", "")
        for place in _places(side, shown) if said else ():
            row = rows[place]
            row.has_first_error = True
            if said != NONE:
                step = _step(said, place, shown, f"first-{side}")
                row.first_error = step if row.first_error is None else min(step, row.first_error)


def _step(text: str, place: int, shown: Shown, name: str) -> int:
    count = shown.on_side(place).agent_step_count if place < len(shown.trajectories) else 0
    if not text.isascii() or not text.isdecimal() or int(text) >= count:
        raise DomainError(
            f"Agent step {text} is not in this run; they go from 0 to {count - 1}.", pointer=f"/{name}"
        )
    return int(text)


def _short(text: str, name: str) -> str:
    if len(text) > LONGEST:
        raise DomainError(f"A correction is longer than {LONGEST} characters.", pointer=f"/{name}")
    return text


class StepLabelType(FeedbackType[StepLabelSet, StepValue, schema.StepLabelRecord]):
    name = "step"
    label = "Step labels"
    question = "Which steps are good, which are bad?"
    about = "Every agent step good, neutral or bad, with a correction; or only the first error."
    model = StepLabelSet
    fewest = 1
    most = 2
    names = TextPattern(rf"{_MARK.pattern}|first-{_SIDE}")
    template = "annotation/feedback_types/_step.html"
    card_template = "annotation/feedback_types/_step_card.html"
    options = {
        "mark": forms.ChoiceField(
            label="Mark", choices=[("labels", "each step"), (FIRST_ERROR, "only the first error")]
        )
    }
    format = "steps"
    keys = ("trajectory", "labels", "first_error", "corrections")
    tells = ("labels", "first_error")

    def parse(self, fields: Fields, shown: Shown) -> list[StepLabelSet]:
        rows = [StepLabelSet(trajectory=shown.on_side(place)) for place in range(len(shown.trajectories))]
        if asks_first_error(shown):
            _parse_first_error(fields, shown, rows)
        else:
            _parse_labels(fields, shown, rows)
        return [row for row in rows if row.labels or row.has_first_error]

    def form_values(self, rows: Sequence[Any], shown: Shown) -> dict[str, str]:
        out: dict[str, str] = {}
        for row in mine(rows, StepLabelSet):
            side = SIDES[shown.side_of(row.trajectory_id)]
            if row.has_first_error:
                out[f"first-{side}"] = NONE if row.first_error is None else str(row.first_error)
            out |= {f"step-{side}-{step}": label for step, label in row.labels.items()}
            out |= {f"step-{side}-{step}-correction": text for step, text in row.corrections.items()}
        return out

    def validate(self, rows: Sequence[Any], shown: Shown, alone: bool) -> None:
        said = {row.trajectory_id for row in mine(rows, StepLabelSet)}
        if asks_first_error(shown):
            for place, side in enumerate(shown.sides):
                if shown.on_side(place).pk not in said:
                    which = f" in {LETTERS[place]}" if len(shown.trajectories) > 1 else ""
                    raise DomainError(
                        f"Mark the first error{which}, or say that there is none.", pointer=f"/first-{side}"
                    )
        elif alone and not said:
            raise DomainError("Mark at least one step.", pointer="/step-left-0")

    def questions(self, fields: Fields, shown: Shown) -> list[Question]:
        """Only the answer that has no step: there is no error."""
        if not asks_first_error(shown):
            return []
        return [
            Question(
                name=f"first-{side}",
                title=f"First error in {LETTERS[place]}" if len(shown.trajectories) > 1 else "First error",
                options=[Option(NONE, "No error", "no error", "0")],
                value=fields.get(f"first-{side}", ""),
            )
            for place, side in enumerate(shown.sides)
        ]

    def summary(self, rows: Sequence[Any], shown: Shown) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            (f"{LETTERS[shown.side_of(row.trajectory_id)]}: " if many else "") + str(row)
            for row in mine(rows, StepLabelSet)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> Read:
        labels = convert(record.get("labels", {}), dict[int, str], pointer="/labels")
        wrong = next((step for step, label in labels.items() if label not in LABELS), None)
        if wrong is not None:
            message = f"{labels[wrong]!r} is no label; a step is {', '.join(LABELS)}."
            raise InvalidRecord(message, pointer=f"/labels/{wrong}")
        corrections = convert(record.get("corrections", {}), dict[int, str], pointer="/corrections")
        value = StepValue(
            labels=labels,
            corrections={step: text for step, text in corrections.items() if text.strip()},
            has_first_error="first_error" in record,
            first_error=convert(record.get("first_error"), int | None, pointer="/first_error"),  # type: ignore[arg-type]
        )
        if not value.labels and not value.has_first_error:
            raise InvalidRecord(
                "say labels, or first_error (an agent_step, or null for none).", pointer="/labels"
            )
        return (place(record.get("trajectory"), "/trajectory"),), value

    def check_record(self, value: StepValue, rows: Sequence[Trajectory]) -> None:
        """Every step that is named is one of the agent's. Raises InvalidRecord."""
        count = rows[0].agent_step_count
        named: dict[str, Iterable[int | None]] = {
            "labels": value.labels,
            "corrections": value.corrections,
            "first_error": (value.first_error,),
        }
        for key, steps in named.items():
            wrong = next((step for step in steps if step is not None and not 0 <= step < count), None)
            if wrong is not None:
                raise InvalidRecord(
                    f"agent step {wrong} is not in the trajectory, which has {count}; they count from 0.",
                    pointer=f"/{key}",
                )

    def make_row(self, value: StepValue, stored: Stored) -> StepLabelSet:
        return StepLabelSet(
            trajectory=stored.trajectories[0],
            labels={str(step): label for step, label in sorted(value.labels.items())},
            corrections={str(step): text for step, text in sorted(value.corrections.items())},
            has_first_error=value.has_first_error,
            first_error=value.first_error,
        )

    def to_record(
        self,
        row: StepLabelSet,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.StepLabelRecord:
        return schema.StepLabelRecord(
            trajectory=of[row.trajectory_id],
            labels={int(step): label for step, label in row.labels.items()},
            corrections={int(step): text for step, text in row.corrections.items()},
            has_first_error=row.has_first_error,
            first_error=row.first_error,
            **common,
        )

    def to_json(self, record: schema.StepLabelRecord, item: WriteItem) -> dict[str, Any]:
        out: dict[str, Any] = {"trajectory": item(record.trajectory)}
        if record.labels:
            out["labels"] = {str(step): label for step, label in record.labels.items()}
        if record.corrections:
            out["corrections"] = {str(step): text for step, text in record.corrections.items()}
        return out | ({"first_error": record.first_error} if record.has_first_error else {})

    def evaluations(self, record: schema.StepLabelRecord) -> Iterator[Evaluation]:
        """Of each marked step: 1 good, 0 neutral, -1 bad. Of the first error: the agent step, or none."""
        values = {"good": 1.0, "neutral": 0.0, "bad": -1.0}
        for step, label in sorted(record.labels.items()):
            correction = record.corrections.get(step)
            yield Evaluation(
                record.trajectory, "step", values[label], label, correction, {"agent_step": step}
            )
        if record.has_first_error:
            first = record.first_error
            said = "none" if first is None else f"step {first}"
            correction = None if first is None else record.corrections.get(first)
            yield Evaluation(record.trajectory, "first error", first, said, correction, {"agent_step": first})

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[Answer]:
        """Labels of each step, ordinal: bad, neutral, good. Where the first error is, nominal."""
        said = rows.values_list(
            "annotation__assignment__annotator__name",
            "annotation__assignment__item_id",
            "trajectory_id",
            "labels",
            "has_first_error",
            "first_error",
        )
        for annotator, item, trajectory, labels, has_first_error, first_error in said.iterator():
            for step, label in labels.items():
                yield Answer(annotator, item, (trajectory, step), LABELS.index(label), "ordinal")
            if has_first_error:
                yield Answer(
                    annotator,
                    item,
                    trajectory,
                    -1 if first_error is None else first_error,
                    "nominal",
                    "first error",
                )


STEP = StepLabelType()
