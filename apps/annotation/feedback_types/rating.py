"""Accept or reject, or a number on a scale, for each trajectory. The form's field is `rating-SIDE`. Records: `ratings`.

A campaign uses one of the two: `accept` and `reject`, or 1 to N.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
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
from apps.annotation.models import Rating
from apps.annotation.presentation import LETTERS, SIDES, FormFields, PresentedItem, parse_choice
from apps.core.errors import DomainError
from workers import schema
from workers.errors import InvalidRecord
from workers.schema.decode import convert, finite
from workers.schema.patterns import TextPattern

ACCEPT = {"accept": True, "reject": False}
SCALES = {"accept": "accept or reject", "3": "1 to 3", "5": "1 to 5", "7": "1 to 7", "10": "1 to 10"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingValue:
    accept: bool | None = None
    rating: float | None = None
    scale: tuple[float, float] | None = None


def _rating_values(shown: PresentedItem) -> list[str]:
    scale = shown.option("rating", "scale", "accept")
    return list(ACCEPT) if scale == "accept" else [str(number) for number in range(1, int(scale) + 1)]


def check_scale(number: float, scale: tuple[float, float] | None, pointer: str) -> None:
    """Raises InvalidRecord if the scale is invalid or the number is outside it."""
    if scale is None or not scale[0] < scale[1] or not isfinite(scale[1] - scale[0]):
        raise InvalidRecord(
            "scale must be [lowest, highest], two different finite numbers.", pointer="/scale"
        )
    if not scale[0] <= number <= scale[1]:
        raise InvalidRecord(
            f"{number:g} is not on the scale from {scale[0]:g} to {scale[1]:g}.", pointer=pointer
        )


class RatingType(FeedbackType[Rating, RatingValue, schema.RatingRecord]):
    name = "rating"
    label = "Rating"
    question = "How good is the trajectory?"
    description = "Accept or reject, or a number, for each trajectory."
    model = Rating
    min_trajectories = 1
    max_trajectories = len(SIDES)
    field_pattern = TextPattern(rf"rating-({'|'.join(SIDES)})")
    options = {"scale": forms.ChoiceField(label="Rate by", choices=list(SCALES.items()))}
    import_format = "ratings"
    record_keys = ("trajectory", "accept", "rating", "scale")
    distinguishing_keys = ("accept", "rating")

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[Rating]:
        asked = _rating_values(shown)
        rows = []
        for place, side in enumerate(shown.sides):
            said = parse_choice(fields, f"rating-{side}", asked, "rating")
            if said in ACCEPT:
                rows.append(Rating(trajectory=shown.on_side(place), accept=ACCEPT[said]))
            elif said:
                rows.append(
                    Rating(trajectory=shown.on_side(place), rating=float(said), low=1, high=float(asked[-1]))
                )
        return rows

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        return {
            f"rating-{SIDES[shown.side_of(row.trajectory_id)]}": str(row)
            for row in records_of_type(rows, Rating)
        }

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        said = {row.trajectory_id for row in records_of_type(rows, Rating)}
        for place, side in enumerate(shown.sides):
            if shown.on_side(place).pk not in said:
                which = LETTERS[place] if len(shown.trajectories) > 1 else "the trajectory"
                raise DomainError(f"Rate {which} first.", pointer=f"/rating-{side}")

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        asked = _rating_values(shown)
        options = (
            [Option("accept", "Accept", "Accept", "a"), Option("reject", "Reject", "Reject", "r")]
            if asked[0] in ACCEPT
            else [
                Option(number, number, f"{number} of {asked[-1]}", number if len(number) == 1 else "0")
                for number in asked
            ]
        )
        return [
            Question(
                name=f"rating-{side}",
                title=f"Rating of {LETTERS[place]}" if len(shown.trajectories) > 1 else self.question,
                place=place,
                heading="Rating" if len(shown.trajectories) > 1 else "",
                options=options,
                value=fields.get(f"rating-{side}", ""),
            )
            for place, side in enumerate(shown.sides)
        ]

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        many = len(shown.trajectories) > 1
        return "; ".join(
            (f"{LETTERS[shown.side_of(row.trajectory_id)]}: " if many else "")
            + (str(row).capitalize() if row.accept is not None else f"{row} of {row.high:g}")
            for row in records_of_type(rows, Rating)
        )

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        finite(record.get("rating"), pointer="/rating")
        value = convert(
            {key: record[key] for key in ("accept", "rating", "scale") if key in record}, RatingValue
        )
        if (value.accept is None) == (value.rating is None):
            raise InvalidRecord(
                "give either accept (true or false) or rating with its scale.", pointer="/accept"
            )
        if value.rating is not None:
            check_scale(value.rating, value.scale, "/rating")
        elif value.scale is not None:
            raise InvalidRecord("`accept` takes no scale; only `rating` does.", pointer="/scale")
        return (place(record.get("trajectory"), "/trajectory"),), value

    def make_row(self, value: RatingValue, stored: ImportTarget) -> Rating:
        low, high = value.scale or (None, None)
        return Rating(
            trajectory=stored.trajectories[0], accept=value.accept, rating=value.rating, low=low, high=high
        )

    def to_record(
        self,
        row: Rating,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.RatingRecord:
        scale = (row.low, row.high) if row.low is not None and row.high is not None else None
        return schema.RatingRecord(
            trajectory=of[row.trajectory_id], accept=row.accept, rating=row.rating, scale=scale, **common
        )

    def to_json(self, record: schema.RatingRecord, item: TrajectoryWriter) -> dict[str, Any]:
        said = {
            "accept": record.accept,
            "rating": record.rating,
            "scale": record.scale and list(record.scale),
        }
        return {"trajectory": item(record.trajectory)} | said

    def evaluations(self, record: schema.RatingRecord) -> Iterator[TrajectoryEvaluation]:
        if record.accept is not None:
            label = "accepted" if record.accept else "rejected"
            yield TrajectoryEvaluation(record.trajectory, "accept", float(record.accept), label)
        else:
            low, high = record.scale or (None, None)
            yield TrajectoryEvaluation(
                record.trajectory, "rating", record.rating, None, None, {"low": low, "high": high}
            )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """Accept or reject, nominal; a rating as its place on its scale, interval."""
        said = rows.values_list(
            "annotation__assignment__annotator__name",
            "annotation__assignment__item_id",
            "trajectory_id",
            "accept",
            "rating",
            "low",
            "high",
        )
        for annotator, item, trajectory, accept, rating, low, high in said.iterator():
            if accept is not None:
                yield AgreementValue(annotator, item, trajectory, int(accept), "nominal")
            else:
                yield AgreementValue(
                    annotator,
                    item,
                    trajectory,
                    (rating - low) / (high - low),
                    "interval",
                    f"{low:g} to {high:g}",
                )


RATING = RatingType()
