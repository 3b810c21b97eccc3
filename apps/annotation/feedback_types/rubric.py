"""A score for each criterion of the rubric and each trajectory, with a note. Records: `rubric`.

The form's fields are `score-SIDE-ID` (a number, or `none`: cannot tell) and `score-SIDE-ID-note`, where ID is the
criterion's. `none` creates no row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from apps.annotation.feedback_types.rating import check_scale
from apps.annotation.models import CriterionScore
from apps.annotation.presentation import LETTERS, SIDES, FormFields, PresentedItem, parse_choice
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import clean
from workers.schema.decode import convert, finite
from workers.schema.patterns import TextPattern

NONE = "none"
MAX_NOTE_LENGTH = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreValue:
    criterion: str
    value: float
    scale: tuple[float, float]
    definition: str | None = None
    note: str | None = None


def _score_fields(shown: PresentedItem) -> Iterator[tuple[str, Criterion, int]]:
    """Field name, criterion and side of each score, by criterion."""
    for criterion in shown.scale_criteria:
        for place, side in enumerate(shown.sides):
            yield f"score-{side}-{criterion.pk}", criterion, place


class RubricScoreType(FeedbackType[CriterionScore, ScoreValue, schema.ScoreRecord]):
    name = "rubric"
    label = "Rubric scores"
    question = "How good is the trajectory by each criterion?"
    description = "A score for each criterion of a rubric, with a note."
    model = CriterionScore
    min_trajectories = 1
    max_trajectories = len(SIDES)
    field_pattern = TextPattern(rf"score-({'|'.join(SIDES)})-\d{{1,12}}(-note)?")
    import_format = "rubric"
    record_keys = ("trajectory", "criterion", "definition", "value", "scale", "note")
    distinguishing_keys = ("value",)
    select_related_fields = ("criterion",)
    answer_types = (Criterion.AnswerType.SCALE,)

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[CriterionScore]:
        rows = []
        for name, criterion, place in _score_fields(shown):
            said = parse_choice(fields, name, [*criterion.points, NONE], "score")
            note = clean(fields.get(f"{name}-note", "").strip())[0]
            if len(note) > MAX_NOTE_LENGTH:
                raise DomainError(
                    f"A note can have at most {MAX_NOTE_LENGTH} characters.", pointer=f"/{name}-note"
                )
            if said and said != NONE:
                rows.append(
                    CriterionScore(
                        trajectory=shown.on_side(place), criterion=criterion, value=float(said), note=note,
                        low=criterion.scale_low, high=criterion.scale_high,
                    )
                )  # fmt: skip
            elif not said:
                run = f" for {LETTERS[place]}" if len(shown.trajectories) > 1 else ""
                raise DomainError(
                    f"“{criterion.name}”{run} has no score; choose ? if you cannot tell.",
                    pointer=f"/{name}",
                )
        return rows

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        said = {(row.trajectory_id, row.criterion_id): row for row in records_of_type(rows, CriterionScore)}
        out: dict[str, str] = {}
        for name, criterion, place in _score_fields(shown):
            row = said.get((shown.on_side(place).pk, criterion.pk))
            out[name] = f"{row.value:g}" if row else NONE
            if row and row.note:
                out[f"{name}-note"] = row.note
        return out

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        if alone and not records_of_type(rows, CriterionScore):
            raise DomainError("Score at least one criterion, or skip the item.")

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        many = len(shown.trajectories) > 1
        return [
            Question(
                name=name,
                title=f"{criterion.name}, {LETTERS[place]}" if many else criterion.name,
                options=[
                    *(
                        Option(
                            point,
                            point,
                            f"{point} of {criterion.points[-1]}"
                            + (f", {names[point]}" if point in names else ""),
                            point if len(point) == 1 else "",
                            point=names.get(point, ""),
                        )
                        for point in criterion.points
                    ),
                    Option(NONE, "?", "cannot tell", "x", "none"),
                ],
                value=fields.get(name, ""),
                criterion=criterion,
                place=place,
                heading=criterion.name if many else "",
                note=f"{name}-note",
                note_value=fields.get(f"{name}-note", ""),
            )
            for name, criterion, place in _score_fields(shown)
            for names in [criterion.point_names]
        ]

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            f"{row.criterion.name}{f' {LETTERS[shown.side_of(row.trajectory_id)]}' if many else ''}: {row}"
            for row in records_of_type(rows, CriterionScore)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        finite(record.get("value"), pointer="/value")
        keys = ("criterion", "definition", "value", "scale", "note")
        value = convert({key: record[key] for key in keys if key in record}, ScoreValue)
        if not value.criterion.strip() or len(value.criterion) > 200:
            raise InvalidRecord(
                "the name of a criterion must have between 1 and 200 characters.", pointer="/criterion"
            )
        check_scale(value.value, value.scale, "/value")
        return (place(record.get("trajectory"), "/trajectory"),), value

    def make_row(self, value: ScoreValue, stored: ImportTarget) -> CriterionScore:
        low, high = value.scale
        criterion = stored.criterion(value.criterion, value.definition, value.scale)
        return CriterionScore(
            trajectory=stored.trajectories[0], criterion=criterion, value=value.value, low=low, high=high,
            note=value.note or "",
        )  # fmt: skip

    def to_record(
        self,
        row: CriterionScore,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.ScoreRecord:
        return schema.ScoreRecord(
            trajectory=of[row.trajectory_id],
            criterion=row.criterion.name,
            definition=row.criterion.definition or None,
            value=row.value,
            scale=(row.low, row.high),
            note=row.note or None,
            **common,
        )

    def to_json(self, record: schema.ScoreRecord, item: TrajectoryWriter) -> dict[str, Any]:
        return {
            "trajectory": item(record.trajectory), "criterion": record.criterion, "definition": record.definition,
            "value": record.value, "scale": list(record.scale), "note": record.note,
        }  # fmt: skip

    def evaluations(self, record: schema.ScoreRecord) -> Iterator[TrajectoryEvaluation]:
        about = {"low": record.scale[0], "high": record.scale[1]}
        yield TrajectoryEvaluation(
            record.trajectory, record.criterion, record.value, None, record.note, about
        )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The place of each score on its scale, interval, by criterion."""
        said = rows.values_list(
            "annotation__assignment__annotator__name",
            "annotation__assignment__item_id",
            "trajectory_id",
            "criterion__name",
            "value",
            "low",
            "high",
        )
        for annotator, item, trajectory, criterion, value, low, high in said.iterator():
            yield AgreementValue(
                annotator, item, trajectory, (value - low) / (high - low), "interval", criterion
            )

    def needs_criteria(self, options: Mapping[str, Any]) -> bool:
        return True


RUBRIC = RubricScoreType()
