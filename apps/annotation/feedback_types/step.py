"""Labels of agent steps: good, neutral or bad with a correction; or only the first error. Records: `steps`.

The form's fields are `step-SIDE-N` (a label; N is the agent_step, from 0) and `step-SIDE-N-correction`, or `first-SIDE`
(an agent_step, or `none`: no error). SIDE is `both` for the shared steps of two trajectories, which are shown once and
labelled for both. A step without a label is unknown, not neutral.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import QuerySet

from apps.annotation.feedback_types.base import (
    AgreementValue,
    FeedbackType,
    ImportTarget,
    Option,
    Place,
    Question,
    ReadRecord,
    TrajectoryEvaluation,
    TrajectoryWriter,
    records_of_type,
)
from apps.annotation.models import LABELS, StepLabelSet
from apps.annotation.presentation import LETTERS, SIDES, FormFields, PresentedItem
from apps.core.errors import DomainError
from apps.core.number_parsing import whole_number
from apps.trajectories.models import Trajectory
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import clean
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern

BOTH, NONE = "both", "none"
FIRST_ERROR = "first_error"
MAX_LENGTH = 20_000
_SIDE = f"({'|'.join([*SIDES[:2], BOTH])})"
_MARK = TextPattern(rf"step-{_SIDE}-(\d{{1,6}})(-correction)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepValue:
    labels: dict[int, str]
    corrections: dict[int, str]
    has_first_error: bool = False
    first_error: int | None = None


def asks_first_error(shown: PresentedItem) -> bool:
    return shown.option("step", "mark", "labels") == FIRST_ERROR


def _places(side: str, shown: PresentedItem) -> Sequence[int]:
    return range(len(shown.trajectories)) if side == BOTH else [SIDES.index(side)]


def _parse_labels(fields: FormFields, shown: PresentedItem, rows: list[StepLabelSet]) -> None:
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
                    f"Unknown label {value!r}; allowed are good, neutral and bad.", pointer=f"/{name}"
                )
    for place, row in enumerate(rows):
        bare = next((step for step in row.corrections if step not in row.labels), None)
        if bare is not None:
            raise DomainError(
                f"Step {bare} of {LETTERS[place]} has a correction but no label; choose a label.",
                pointer=f"/step-{SIDES[place]}-{bare}",
            )


def _parse_first_error(fields: FormFields, shown: PresentedItem, rows: list[StepLabelSet]) -> None:
    """The earliest marked step; an error in the shared steps is the first error of both."""
    for side in (*shown.sides, BOTH):
        said = fields.get(f"first-{side}", "")
        for place in _places(side, shown) if said else ():
            row = rows[place]
            row.has_first_error = True
            if said != NONE:
                step = _step(said, place, shown, f"first-{side}")
                row.first_error = step if row.first_error is None else min(step, row.first_error)


def _step(text: str, place: int, shown: PresentedItem, name: str) -> int:
    count = shown.on_side(place).agent_step_count if place < len(shown.trajectories) else 0
    number = whole_number(text)
    if number is None or number >= count:
        raise DomainError(
            f"Agent step {text[:100]} is not in this trajectory; agent steps are 0 to {count - 1}.",
            pointer=f"/{name}",
        )
    return number


def _short(text: str, name: str) -> str:
    if len(text) > MAX_LENGTH:
        raise DomainError(f"A correction can have at most {MAX_LENGTH} characters.", pointer=f"/{name}")
    return text


class StepLabelType(FeedbackType[StepLabelSet, StepValue, schema.StepLabelRecord]):
    name = "step"
    label = "Step labels"
    question = "Which steps are good and which are bad?"
    description = (
        "A label (good, neutral or bad) and a correction for each agent step, or only the first error."
    )
    model = StepLabelSet
    min_trajectories = 1
    max_trajectories = 2
    field_pattern = TextPattern(rf"{_MARK.pattern}|first-{_SIDE}")
    template = "annotation/feedback_types/_step.html"
    card_template = "annotation/feedback_types/_step_card.html"
    options = {
        "mark": forms.ChoiceField(
            label="Mark", choices=[("labels", "each step"), (FIRST_ERROR, "only the first error")]
        )
    }
    import_format = "steps"
    record_keys = ("trajectory", "labels", "first_error", "corrections")
    distinguishing_keys = ("labels", "first_error")

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[StepLabelSet]:
        rows = [StepLabelSet(trajectory=shown.on_side(place)) for place in range(len(shown.trajectories))]
        if asks_first_error(shown):
            _parse_first_error(fields, shown, rows)
        else:
            _parse_labels(fields, shown, rows)
        return [row for row in rows if row.labels or row.has_first_error]

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        out: dict[str, str] = {}
        for row in records_of_type(rows, StepLabelSet):
            side = SIDES[shown.side_of(row.trajectory_id)]
            if row.has_first_error:
                out[f"first-{side}"] = NONE if row.first_error is None else str(row.first_error)
            out |= {f"step-{side}-{step}": label for step, label in row.labels.items()}
            out |= {f"step-{side}-{step}-correction": text for step, text in row.corrections.items()}
        return out

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        said = {row.trajectory_id for row in records_of_type(rows, StepLabelSet)}
        if asks_first_error(shown):
            for place, side in enumerate(shown.sides):
                if shown.on_side(place).pk not in said:
                    which = f" in {LETTERS[place]}" if len(shown.trajectories) > 1 else ""
                    raise DomainError(
                        f"Mark the first error{which}, or choose “No error”.", pointer=f"/first-{side}"
                    )
        elif alone and not said:
            raise DomainError("Mark at least one step.", pointer="/step-left-0")

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        """Only “No error”: all other answers are on the steps."""
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

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            (f"{LETTERS[shown.side_of(row.trajectory_id)]}: " if many else "") + str(row)
            for row in records_of_type(rows, StepLabelSet)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        labels = convert(record.get("labels", {}), dict[int, str], pointer="/labels")
        wrong = next((step for step, label in labels.items() if label not in LABELS), None)
        if wrong is not None:
            message = f"unknown label {labels[wrong]!r}; allowed are {', '.join(LABELS)}."
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
                "give labels, or first_error (an agent_step, or null for no error).", pointer="/labels"
            )
        return (place(record.get("trajectory"), "/trajectory"),), value

    def check_record(self, value: StepValue, rows: Sequence[Trajectory]) -> None:
        """Check that all steps are agent steps. Raises InvalidRecord."""
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
                    f"agent step {wrong} is not in the trajectory; agent steps are 0 to {count - 1}.",
                    pointer=f"/{key}",
                )

    def make_row(self, value: StepValue, stored: ImportTarget) -> StepLabelSet:
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

    def to_json(self, record: schema.StepLabelRecord, item: TrajectoryWriter) -> dict[str, Any]:
        out: dict[str, Any] = {"trajectory": item(record.trajectory)}
        if record.labels:
            out["labels"] = {str(step): label for step, label in record.labels.items()}
        if record.corrections:
            out["corrections"] = {str(step): text for step, text in record.corrections.items()}
        return out | ({"first_error": record.first_error} if record.has_first_error else {})

    def evaluations(self, record: schema.StepLabelRecord) -> Iterator[TrajectoryEvaluation]:
        """For each labelled step: 1 good, 0 neutral, -1 bad. For the first error: the agent step, or none."""
        values = {"good": 1.0, "neutral": 0.0, "bad": -1.0}
        for step, label in sorted(record.labels.items()):
            correction = record.corrections.get(step)
            yield TrajectoryEvaluation(
                record.trajectory, "step", values[label], label, correction, {"agent_step": step}
            )
        if record.has_first_error:
            first = record.first_error
            said = "none" if first is None else f"step {first}"
            correction = None if first is None else record.corrections.get(first)
            yield TrajectoryEvaluation(
                record.trajectory, "first error", first, said, correction, {"agent_step": first}
            )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The label of each step, ordinal: bad, neutral, good. The step of the first error, nominal."""
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
                yield AgreementValue(annotator, item, (trajectory, step), LABELS.index(label), "ordinal")
            if has_first_error:
                yield AgreementValue(
                    annotator,
                    item,
                    trajectory,
                    -1 if first_error is None else first_error,
                    "nominal",
                    "first error",
                )


STEP = StepLabelType()
