"""Metrics that people decided on, to judge more trajectories than an induction does."""

from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.induce.comment_points import read_points
from workers.induce.embedding import Embedder
from workers.induce.grounding import gather_evidence
from workers.induce.induction_files import read_comments, read_config, read_groups
from workers.induce.metric_classifier import induce_from_groups, judge_trajectories
from workers.induce.metric_report import require_enough, resolve_groups
from workers.induce.point_space import place_points
from workers.induce.step_features import extract_features
from workers.schema import Trajectory, read_trajectories


class MetricJudge:
    """folder: of an induction by the embedded engine, with groups.json; its comments are what the metrics are fitted
    to, as `workers.induce.pipeline` does. Raises RewardError."""

    def __init__(self, folder: Path) -> None:
        config, groups = read_config(folder), read_groups(folder)
        active = [group for group in groups or () if group.stands]
        if not active:
            raise RewardError("No metric is left to judge by: accept one, or extract metrics again.")
        self._encode = Embedder(device=config.device)
        comments = read_comments(folder)
        points, vectors = read_points(comments, self._encode)
        trajectories = read_trajectories(folder / "trajectories.jsonl.zst")
        evidence, self._projection = gather_evidence(
            points, vectors, ((str(found.id), found) for found in trajectories), self._encode
        )
        require_enough(evidence.aspects, len(comments), unsigned=sum(not point.sign for point in points))
        evidence, _ = place_points(evidence, self._encode, Embedder(device=config.device, is_middle=True))
        decided = resolve_groups(evidence.aspects, [group.points for group in active])
        self._induced = induce_from_groups(evidence, decided, seed=config.seed)
        self.names = [group.name for group in active]

    def verdicts(self, trajectory: Trajectory) -> list[dict[str, Any]]:
        """{metric, sign, value, step} of each metric, in their order; see traits.jsonl of `induction_files`."""
        steps = self._projection(extract_features(trajectory, self._encode))
        found = judge_trajectories(
            self._induced, steps, [str(trajectory.id)], [trajectory.task.id], self.names
        )
        return [
            {"metric": trait.metric, "sign": trait.sign, "value": round(value, 4), "step": trait.step}
            for trait, value in found.traits
        ]
