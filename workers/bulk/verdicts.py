"""Verdicts of induced metrics on the trajectories of a chunk."""

from collections.abc import Sequence
from pathlib import Path

from workers.bulk.scoring import ReadChunk
from workers.induce.metric_judge import MetricJudge
from workers.schema import Trajectory
from workers.schema.bulk_items import BulkItem


class VerdictWork:
    """The metrics are fitted to the comments once, for all chunks. Raises RewardError where they cannot be."""

    def __init__(self, folder: Path) -> None:
        self._judge = MetricJudge(folder)

    def read(self, trajectories: Sequence[Trajectory]) -> ReadChunk:
        return ReadChunk([int(found.id or 0) for found in trajectories], list(enumerate(trajectories)), {})

    def compute(self, chunk: ReadChunk) -> list[BulkItem]:
        return [
            BulkItem(trajectory=chunk.ids[place], verdicts=self._judge.verdicts(trajectory))
            for place, trajectory in chunk.rendered
        ]
