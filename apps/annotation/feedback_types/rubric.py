"""Each criterion of the rubric on its scale, for each run, with a note. Records: `rubric`.

The form's fields are `score-SIDE-ID` (a number, or `none`: cannot be said) and `score-SIDE-ID-note`, where ID is the
criterion's. What cannot be said leaves no row: missing is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    chosen,
    mine,
)
from apps.annotation.feedback_types.rating import check_scale
from apps.annotation.models import CriterionScore
from apps.core.errors import DomainError
from apps.rubrics.models import Criterion
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import clean
from workers.schema.decode import convert, finite
from workers.schema.patterns import TextPattern

NONE = "none"
LONGEST_NOTE = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreValue:
    criterion: str
    value: float
    scale: tuple[float, float]
    definition: str | None = None
    note: str | None = None


def _asked(shown: Shown) -> Iterator[tuple[str, Criterion, int]]:
    """The field, the criterion and the place of each score, a criterion after the other."""
    for criterion in shown.criteria:
        for place, side in enumerate(shown.sides):
            yield f"score-{side}-{criterion.pk}", criterion, place


class RubricScoreType(FeedbackType[CriterionScore, ScoreValue, schema.ScoreRecord]):
    name = "rubric"
    label = "Rubric scores"
    question = "How good is it by each criterion?"
    about = "Every criterion of a rubric on its scale, with a note."
    model = CriterionScore
    fewest = 1
    most = len(SIDES)
    names = TextPattern(rf"score-({'|'.join(SIDES)})-\d{{1,12}}(-note)?")
    format = "rubric"
    keys = ("trajectory", "criterion", "definition", "value", "scale", "note")
    tells = ("value",)
    related = ("criterion",)

    def parse(self, fields: Fields, shown: Shown) -> list[CriterionScore]:
        rows = []
        for name, criterion, place in _asked(shown):
            said = chosen(fields, name, [*criterion.points, NONE], "score")
            note = clean(fields.get(f"{name}-note", "").strip())[0]
            if len(note) > LONGEST_NOTE:
                raise DomainError(
                    f"A note is longer than {LONGEST_NOTE} characters.", pointer=f"/{name}-note"
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
                    f"“{criterion.name}”{run} has no score yet; ? says that you cannot tell.",
                    pointer=f"/{name}",
                )
        return rows

    def form_values(self, rows: Sequence[Any], shown: Shown) -> dict[str, str]:
        said = {(row.trajectory_id, row.criterion_id): row for row in mine(rows, CriterionScore)}
        out: dict[str, str] = {}
        for name, criterion, place in _asked(shown):
            row = said.get((shown.on_side(place).pk, criterion.pk))
            out[name] = f"{row.value:g}" if row else NONE
            if row and row.note:
                out[f"{name}-note"] = row.note
        return out

    def validate(self, rows: Sequence[Any], shown: Shown, alone: bool) -> None:
        if alone and not mine(rows, CriterionScore):
            raise DomainError("Score at least one criterion; skip the item if none can be.")

    def questions(self, fields: Fields, shown: Shown) -> list[Question]:
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
                            f"{point} of {criterion.points[-1]}",
                            point if len(point) == 1 else "",
                        )
                        for point in criterion.points
                    ),
                    Option(NONE, "?", "cannot be said", "x", "none"),
                ],
                value=fields.get(name, ""),
                criterion=criterion,
                note=f"{name}-note",
                note_value=fields.get(f"{name}-note", ""),
            )
            for name, criterion, place in _asked(shown)
        ]

    def summary(self, rows: Sequence[Any], shown: Shown) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            f"{row.criterion.name}{f' {LETTERS[shown.side_of(row.trajectory_id)]}' if many else ''}: {row}"
            for row in mine(rows, CriterionScore)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> Read:
        finite(record.get("value"), pointer="/value")
        keys = ("criterion", "definition", "value", "scale", "note")
        value = convert({key: record[key] for key in keys if key in record}, ScoreValue)
        if not value.criterion.strip() or len(value.criterion) > 200:
            raise InvalidRecord("the name of a criterion has 1 to 200 characters.", pointer="/criterion")
        check_scale(value.value, value.scale, "/value")
        return (place(record.get("trajectory"), "/trajectory"),), value

    def make_row(self, value: ScoreValue, stored: Stored) -> CriterionScore:
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

    def to_json(self, record: schema.ScoreRecord, item: WriteItem) -> dict[str, Any]:
        return {
            "trajectory": item(record.trajectory), "criterion": record.criterion, "definition": record.definition,
            "value": record.value, "scale": list(record.scale), "note": record.note,
        }  # fmt: skip

    def evaluations(self, record: schema.ScoreRecord) -> Iterator[Evaluation]:
        about = {"low": record.scale[0], "high": record.scale[1]}
        yield Evaluation(record.trajectory, record.criterion, record.value, None, record.note, about)

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[Answer]:
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
            yield Answer(annotator, item, trajectory, (value - low) / (high - low), "interval", criterion)

    def needs_criteria(self, options: Mapping[str, Any]) -> bool:
        return True


RUBRIC = RubricScoreType()
