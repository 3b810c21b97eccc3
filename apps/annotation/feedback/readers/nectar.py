"""`nectar`: the ranks of the answers to a prompt, 1 the best. `stack-exchange`: answers ranked by their score."""

from collections.abc import Iterator, Sequence
from typing import Any

from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.readers.answer_rows import Places, answer_reader, label_number
from apps.annotation.feedback_types.ranking import RANKING, RankingValue, dense
from apps.trajectories.formats.data_rows import nectar, stack_exchange
from workers.errors import InvalidRecord


def ranking(places: Places, ranks: Sequence[int], annotator: str, pointer: str) -> Incoming:
    """ranks: 1 is best. Raises InvalidRecord for a number of trajectories that cannot be ranked."""
    most = RANKING.max_trajectories
    if not RANKING.min_trajectories <= len(places) <= most:
        raise InvalidRecord(
            f"has {len(places)} answers; a ranking takes {RANKING.min_trajectories} to {most}.",
            pointer=pointer,
        )
    value = RankingValue(ranks=tuple(dense(ranks)))
    return Incoming(kind="ranking", task=places[0].task, places=places, annotator=annotator, value=value)


def _ranks(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    ranks = [
        label_number(answer, "rank", pointer=f"/answers/{index}")
        for index, answer in enumerate(row["answers"])
    ]
    yield ranking(places, [int(rank) for rank in ranks], "nectar", "/answers")


def _scores(row: dict[str, Any], places: Places) -> Iterator[Incoming]:
    scores = [
        label_number(answer, "pm_score", pointer=f"/answers/{index}")
        for index, answer in enumerate(row["answers"])
    ]
    order = sorted(set(scores), reverse=True)
    yield ranking(places, [order.index(score) + 1 for score in scores], "stack-exchange", "/answers")


read = answer_reader(nectar, _ranks, ("/answers/*/rank", "/answers/*/answer", "/answers/*/model"))
read_stack_exchange = answer_reader(
    stack_exchange, _scores, ("/answers/*/pm_score", "/answers/*/text", "/answers/*/answer_id")
)
