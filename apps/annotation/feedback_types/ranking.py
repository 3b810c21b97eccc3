"""The order of two or more trajectories. The form's field `rank-SIDE` is 1 (best) to N. Records: `rankings`.

Ties are allowed. Ranks are stored dense: 1, 3, 3 becomes 1, 2, 2.
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
from apps.annotation.models import Ranking
from apps.annotation.presentation import LETTERS, SIDES, FormFields, PresentedItem, parse_choice
from apps.core.errors import DomainError
from workers import schema
from workers.errors import InvalidRecord
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingValue:
    ranks: tuple[int, ...]


def dense(ranks: Sequence[int]) -> list[int]:
    """1 for the best, no number left out: [1, 3, 3] is [1, 2, 2]."""
    order = {rank: number for number, rank in enumerate(sorted(set(ranks)), 1)}
    return [order[rank] for rank in ranks]


def _allowed(shown: PresentedItem) -> list[str]:
    return [str(number) for number in range(1, len(shown.trajectories) + 1)]


class RankingType(FeedbackType[Ranking, RankingValue, schema.RankingRecord]):
    name = "ranking"
    label = "Ranking"
    question = "Rank from best to worst"
    description = "Two to eight trajectories of one task in order; ties are allowed."
    model = Ranking
    min_trajectories = 2
    max_trajectories = len(SIDES)
    field_pattern = TextPattern(rf"rank-({'|'.join(SIDES)})")
    template = "annotation/feedback_types/_ranking.html"
    import_format = "rankings"
    record_keys = ("items", "ranks")
    distinguishing_keys = ("ranks",)

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[Ranking]:
        said = [parse_choice(fields, f"rank-{side}", _allowed(shown), "rank") for side in shown.sides]
        if not any(said):
            return []
        missing = next((place for place, rank in enumerate(said) if not rank), None)
        if missing is not None:
            raise DomainError(
                f"{LETTERS[missing]} has no rank; equally good trajectories can share a rank.",
                pointer=f"/rank-{SIDES[missing]}",
            )
        ranks = [0] * len(said)
        for place, rank in enumerate(said):
            ranks[shown.position(place)] = int(rank)
        return [Ranking(ranks=dense(ranks))]

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        return {
            f"rank-{side}": str(row.ranks[shown.position(place)])
            for row in records_of_type(rows, Ranking)
            for place, side in enumerate(shown.sides)
        }

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        if not records_of_type(rows, Ranking):
            raise DomainError("Give every trajectory a rank first; 1 is the best.", pointer="/rank-left")

    def questions(self, fields: FormFields, shown: PresentedItem) -> list[Question]:
        options = [
            Option(number, number, f"rank {number}" + (", the best" if number == "1" else ""), number)
            for number in _allowed(shown)
        ]
        return [
            Question(
                name=f"rank-{side}",
                title=f"{LETTERS[place]} ranks",
                short=LETTERS[place],
                about=self.question,
                options=options,
                value=fields.get(f"rank-{side}", ""),
            )
            for place, side in enumerate(shown.sides)
        ]

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        """ "B > A = C"."""
        for row in records_of_type(rows, Ranking):
            by_rank: dict[int, list[str]] = {}
            for place in range(len(shown.trajectories)):
                by_rank.setdefault(row.ranks[shown.position(place)], []).append(LETTERS[place])
            return " > ".join(" = ".join(by_rank[rank]) for rank in sorted(by_rank))
        return ""

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        items = convert(record.get("items"), list[Any], pointer="/items")
        if not 2 <= len(items) <= len(SIDES):
            raise InvalidRecord(
                f"a ranking must have between 2 and {len(SIDES)} items, not {len(items)}.", pointer="/items"
            )
        ranks = convert(record.get("ranks"), list[int], pointer="/ranks")
        if len(ranks) != len(items):
            raise InvalidRecord(
                f"the number of ranks ({len(ranks)}) must equal the number of items ({len(items)}).",
                pointer="/ranks",
            )
        if min(ranks) < 1:
            raise InvalidRecord("ranks start at 1, the best.", pointer="/ranks")
        places = tuple(place(ranked, f"/items/{number}") for number, ranked in enumerate(items))
        return places, RankingValue(ranks=tuple(dense(ranks)))

    def make_row(self, value: RankingValue, stored: ImportTarget) -> Ranking:
        ranks = [0] * len(value.ranks)
        for position, rank in zip(stored.positions, value.ranks, strict=True):
            ranks[position] = rank
        return Ranking(ranks=ranks)

    def to_record(
        self,
        row: Ranking,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.RankingRecord:
        return schema.RankingRecord(trajectories=tuple(places), ranks=tuple(row.ranks), **common)

    def to_json(self, record: schema.RankingRecord, item: TrajectoryWriter) -> dict[str, Any]:
        return {
            "items": [item(trajectory) for trajectory in record.trajectories],
            "ranks": list(record.ranks),
        }

    def evaluations(self, record: schema.RankingRecord) -> Iterator[TrajectoryEvaluation]:
        """The rank of each trajectory; 1 is the best."""
        count = len(record.trajectories)
        for trajectory, rank in zip(record.trajectories, record.ranks, strict=True):
            yield TrajectoryEvaluation(
                trajectory, record.criterion or "rank", rank, f"{rank} of {count}", None, {"of": count}
            )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The rank of each trajectory, ordinal."""
        said = rows.values_list(
            "annotation__assignment__annotator__name", "annotation__assignment__item_id", "ranks"
        )
        for annotator, item, ranks in said.iterator():
            for position, rank in enumerate(ranks):
                yield AgreementValue(annotator, item, (item, position), rank, "ordinal")


RANKING = RankingType()
