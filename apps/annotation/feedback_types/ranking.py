"""The order of two or more runs, ties allowed. The form's field `rank-SIDE` is 1 (best) to N. Records: `rankings`.

Ranks are kept dense: what is said as 1, 3, 3 is stored as 1, 2, 2.
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
from apps.annotation.models import Ranking
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


def _allowed(shown: Shown) -> list[str]:
    return [str(number) for number in range(1, len(shown.trajectories) + 1)]


class RankingType(FeedbackType[Ranking, RankingValue, schema.RankingRecord]):
    name = "ranking"
    label = "Ranking"
    question = "From best to worst?"
    about = "Two to eight runs of one task, put in order; ties allowed."
    model = Ranking
    fewest = 2
    most = len(SIDES)
    names = TextPattern(rf"rank-({'|'.join(SIDES)})")
    template = "annotation/feedback_types/_ranking.html"
    format = "rankings"
    keys = ("items", "ranks")
    tells = ("ranks",)

    def parse(self, fields: Fields, shown: Shown) -> list[Ranking]:
        said = [chosen(fields, f"rank-{side}", _allowed(shown), "rank") for side in shown.sides]
        if not any(said):
            return []
        missing = next((place for place, rank in enumerate(said) if not rank), None)
        if missing is not None:
            raise DomainError(
                f"{LETTERS[missing]} has no rank yet; runs that are equally good share one.",
                pointer=f"/rank-{SIDES[missing]}",
            )
        ranks = [0] * len(said)
        for place, rank in enumerate(said):
            ranks[shown.position(place)] = int(rank)
        return [Ranking(ranks=dense(ranks))]

    def form_values(self, rows: Sequence[Any], shown: Shown) -> dict[str, str]:
        return {
            f"rank-{side}": str(row.ranks[shown.position(place)])
            for row in mine(rows, Ranking)
            for place, side in enumerate(shown.sides)
        }

    def validate(self, rows: Sequence[Any], shown: Shown, alone: bool) -> None:
        if not mine(rows, Ranking):
            raise DomainError("Give every run a rank first; 1 is the best.", pointer="/rank-left")

    def questions(self, fields: Fields, shown: Shown) -> list[Question]:
        options = [
            Option(number, number, f"rank {number}" + (", the best" if number == "1" else ""), number)
            for number in _allowed(shown)
        ]
        return [
            Question(
                name=f"rank-{side}",
                title=f"{LETTERS[place]} ranks",
                short=LETTERS[place],
                options=options,
                value=fields.get(f"rank-{side}", ""),
            )
            for place, side in enumerate(shown.sides)
        ]

    def summary(self, rows: Sequence[Any], shown: Shown) -> str:
        """ "B > A = C"."""
        for row in mine(rows, Ranking):
            by_rank: dict[int, list[str]] = {}
            for place in range(len(shown.trajectories)):
                by_rank.setdefault(row.ranks[shown.position(place)], []).append(LETTERS[place])
            return " > ".join(" = ".join(by_rank[rank]) for rank in sorted(by_rank))
        return ""

    def read_record(self, record: dict[str, Any], place: Place) -> Read:
        items = convert(record.get("items"), list[Any], pointer="/items")
        if not 2 <= len(items) <= len(SIDES):
            raise InvalidRecord(
                f"a ranking is of 2 to {len(SIDES)} items; here are {len(items)}.", pointer="/items"
            )
        ranks = convert(record.get("ranks"), list[int], pointer="/ranks")
        if len(ranks) != len(items):
            raise InvalidRecord(
                f"{len(items)} items need as many ranks; here are {len(ranks)}.", pointer="/ranks"
            )
        if min(ranks) < 1:
            raise InvalidRecord("ranks count from 1, the best.", pointer="/ranks")
        places = tuple(place(ranked, f"/items/{number}") for number, ranked in enumerate(items))
        return places, RankingValue(ranks=tuple(dense(ranks)))

    def make_row(self, value: RankingValue, stored: Stored) -> Ranking:
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

    def to_json(self, record: schema.RankingRecord, item: WriteItem) -> dict[str, Any]:
        return {
            "items": [item(trajectory) for trajectory in record.trajectories],
            "ranks": list(record.ranks),
        }

    def evaluations(self, record: schema.RankingRecord) -> Iterator[Evaluation]:
        """The rank of each run; 1 is the best."""
        count = len(record.trajectories)
        for trajectory, rank in zip(record.trajectories, record.ranks, strict=True):
            yield Evaluation(
                trajectory, record.criterion or "rank", rank, f"{rank} of {count}", None, {"of": count}
            )

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[Answer]:
        """The rank of each run, ordinal."""
        said = rows.values_list(
            "annotation__assignment__annotator__name", "annotation__assignment__item_id", "ranks"
        )
        for annotator, item, ranks in said.iterator():
            for position, rank in enumerate(ranks):
                yield Answer(annotator, item, (item, position), rank, "ordinal")


RANKING = RankingType()
