"""Comparison of two trajectories: the better one and by how much, a tie, or both bad; overall, by criterion, or both.

The form's fields `choice` (overall) and `choice-ID` (a criterion) speak of the sides as shown: `left-3` to `left-1`,
`tie`, `both_bad`, `right-1` to `right-3`. Records: `pairs`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
from apps.annotation.models import PREFERENCE_CHOICES, Preference
from apps.annotation.presentation import FormFields, PresentedItem, parse_choice
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from workers import schema
from workers.schema import Choice
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern

CHOICES = ("a", "b")
FLIPPED = {"a": "b", "b": "a", "tie": "tie", "both_bad": "both_bad"}
VALUES = ("left-3", "left-2", "left-1", "tie", "both_bad", "right-1", "right-2", "right-3")
OVERALL, CRITERIA, BOTH = "overall", "criteria", "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceValue:
    choice: Choice
    strength: Literal[1, 2, 3] = 1
    criterion: str | None = None


def _criteria(shown: PresentedItem) -> list[Criterion | None]:
    """The criteria to compare by; None is overall."""
    by = shown.option("pairwise", "by", OVERALL)
    return [*([None] if by != CRITERIA else []), *(shown.scale_criteria if by != OVERALL else [])]


def _name(criterion: Criterion | None) -> str:
    return "choice" if criterion is None else f"choice-{criterion.pk}"


def _value(row: Preference, shown: PresentedItem) -> str:
    if row.choice not in CHOICES:
        return row.choice
    side = list(shown.order).index(CHOICES.index(row.choice))
    return f"{('left', 'right')[side]}-{row.strength}"


OPTIONS = (
    Option("left-3", "A much better", "A is much better", "1", "left"),
    Option("left-2", "A better", "A is better", "2", "left"),
    Option("left-1", "A slightly better", "A is slightly better", "3", "left"),
    Option("tie", "Tie", "A tie", "0", "none"),
    Option("both_bad", "Both bad", "Both are bad", "x", "none"),
    Option("right-1", "B slightly better", "B is slightly better", "4", "right"),
    Option("right-2", "B better", "B is better", "5", "right"),
    Option("right-3", "B much better", "B is much better", "6", "right"),
)
_SUMMARIES = {
    option.value: option.words if option.side == "none" else option.name.replace(" is", "")
    for option in OPTIONS
}


class PreferenceType(FeedbackType[Preference, PreferenceValue, schema.PreferenceRecord]):
    name = "pairwise"
    label = "Comparison"
    question = "Which trajectory is better?"
    description = "Two trajectories of one task side by side: which one is better, and by how much."
    model = Preference
    min_trajectories = 2
    max_trajectories = 2
    field_pattern = TextPattern(r"choice(-\d{1,12})?")
    template = "annotation/feedback_types/_pairwise.html"
    options = {
        "by": forms.ChoiceField(
            label="Compare",
            choices=[
                (OVERALL, "overall"),
                (CRITERIA, "by each criterion of the rubric"),
                (BOTH, "overall, and by each criterion"),
            ],
        )
    }
    answer_types = (Criterion.AnswerType.SCALE,)
    import_format = "pairs"
    record_keys = ("a", "b", "choice", "strength", "criterion")
    distinguishing_keys = ("choice",)
    select_related_fields = ("criterion",)

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[Preference]:
        rows = []
        for criterion in _criteria(shown):
            said = parse_choice(fields, _name(criterion), VALUES, "choice")
            if not said:
                continue
            row = Preference(criterion=criterion, choice=said)
            if said not in FLIPPED:
                side, _, strength = said.partition("-")
                row.choice = CHOICES[shown.position(("left", "right").index(side))]
                row.strength = int(strength)
            rows.append(row)
        return rows

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        return {
            "choice" if row.criterion_id is None else f"choice-{row.criterion_id}": _value(row, shown)
            for row in records_of_type(rows, Preference)
        }

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        said = {row.criterion_id for row in records_of_type(rows, Preference)}
        for criterion in _criteria(shown):
            if (criterion and criterion.pk) not in said:
                which = f" by “{criterion.name}”" if criterion else ""
                raise DomainError(
                    f"Choose an answer first{which}: A, B, a tie or both bad.", pointer=f"/{_name(criterion)}"
                )

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        asked = _criteria(shown)
        return [
            Question(
                name=_name(criterion),
                title=criterion.name if criterion else "Overall" if len(asked) > 1 else self.question,
                options=OPTIONS,
                value=fields.get(_name(criterion), ""),
                criterion=criterion,
            )
            for criterion in asked
        ]

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        return "; ".join(
            f"{row.criterion.name}: {_SUMMARIES[_value(row, shown)]}"
            if row.criterion
            else _SUMMARIES[_value(row, shown)]
            for row in records_of_type(rows, Preference)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        places = (place(record.get("a"), "/a"), place(record.get("b"), "/b"))
        said = {key: record[key] for key in ("choice", "strength", "criterion") if key in record}
        return places, convert(said, PreferenceValue)

    def make_row(self, value: PreferenceValue, stored: ImportTarget) -> Preference:
        return Preference(
            choice=FLIPPED[value.choice] if stored.positions[0] == 1 else value.choice,
            strength=value.strength,
            criterion=stored.criterion(value.criterion, None, None) if value.criterion else None,
        )

    def to_record(
        self,
        row: Preference,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.PreferenceRecord:
        return schema.PreferenceRecord(
            a=places[0],
            b=places[1],
            choice=row.choice,  # type: ignore[arg-type]
            strength=row.strength,  # type: ignore[arg-type]
            criterion=row.criterion.name if row.criterion else None,
            **common,
        )

    def to_json(self, record: schema.PreferenceRecord, item: TrajectoryWriter) -> dict[str, Any]:
        return {
            "a": item(record.a), "b": item(record.b),
            "choice": record.choice, "strength": record.strength, "criterion": record.criterion,
        }  # fmt: skip

    def evaluations(self, record: schema.PreferenceRecord) -> Iterator[TrajectoryEvaluation]:
        """For each trajectory: 1 if preferred, 0 if the other one was, 0.5 for a tie."""
        name = record.criterion or "preference"
        for side, trajectory, other_trajectory in (("a", record.a, record.b), ("b", record.b, record.a)):
            about = {"against": other_trajectory.id, "strength": record.strength}
            if record.choice in ("a", "b"):
                is_better = record.choice == side
                yield TrajectoryEvaluation(
                    trajectory, name, float(is_better), "better" if is_better else "worse", None, about
                )
            elif record.choice == "tie":
                yield TrajectoryEvaluation(trajectory, name, 0.5, "tie", None, about)
            else:
                yield TrajectoryEvaluation(trajectory, name, 0.0, "both bad", None, about)

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The choice, nominal: a tie is not between A and B, and both bad is neither."""
        said = rows.values_list(
            "annotation__assignment__annotator__name",
            "annotation__assignment__item_id",
            "choice",
            "criterion__name",
        )
        for annotator, item, choice, criterion in said.iterator():
            yield AgreementValue(
                annotator, item, item, PREFERENCE_CHOICES.index(choice), "nominal", criterion
            )

    def needs_criteria(self, options: Mapping[str, Any]) -> bool:
        return options.get("by", OVERALL) != OVERALL


PAIRWISE = PreferenceType()
