"""The statistics of an imported model's rewards, by inputs that are like those it is to score."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from workers.errors import RewardError
from workers.models.artifact import LocalScorer
from workers.models.loaded import LoadedModel
from workers.models.ood import OodDetector
from workers.schema import parse_item, parse_json, read_trajectories
from workers.schema.items import TrajectoryId
from workers.text.pictures import use_pictures
from workers.train.reward_statistics import (
    TrajectoryScores,
    reward_statistics,
    score_rendered,
    training_statistics,
)

UNCALIBRATED = {"median": 0.0, "std": 1.0}
FEWEST = 10
MOST = 2000  # of a larger file, as many are taken at equal distances
_BATCH = 8


def calibrate(scorer: LocalScorer, path: Path, folder: Path) -> dict[str, Any]:
    """Its part of the manifest: reward, training; and, where there are enough, a detector of what is out of
    distribution, written to the artifact's folder.

    path: trajectories as `write_trajectories` writes them, or JSON lines of what `/score` takes. Raises RewardError.
    """
    use_pictures(path.parent)
    contents = _spread(list(_contents(path)))
    if len(contents) < FEWEST:
        raise RewardError(
            f"{path.name} holds {len(contents)} trajectories; a calibration needs at least {FEWEST}. Give more, or "
            "import without: median 0 and standard deviation 1 then leave rewards as the model gives them."
        )
    rendered = [scorer.render(content) for content in contents]
    if isinstance(scorer, LoadedModel):
        scores = score_rendered(scorer.model, rendered)
    else:
        batches = (rendered[start : start + _BATCH] for start in range(0, len(rendered), _BATCH))
        raw = torch.tensor(
            [score.raw for batch in batches for score in scorer.score(batch)], dtype=torch.double
        )
        scores = TrajectoryScores(raw, torch.zeros_like(raw), torch.empty(0, 0))
    if not math.isfinite(float(scores.raw.sum())):
        raise RewardError("the model gives rewards that are no finite numbers; it cannot be used.")
    try:
        reward = reward_statistics(scores.raw)
    except RewardError:
        raise RewardError(
            f"the model gives every trajectory of {path.name} the same reward; calibrate on others."
        ) from None
    if scores.ends.shape[-1] > 1 and (detector := OodDetector.fit(scores.ends)) is not None:
        detector.save(folder)
    return {"reward": reward, "training": training_statistics(scores, rendered, reward)}


def _contents(path: Path) -> Iterator[Any]:
    if path.suffix == ".zst":
        yield from read_trajectories(path)
        return
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                content = parse_item(parse_json(line)).content
            except RewardError as error:
                raise RewardError(f"{path.name}, line {number}: {error.message}") from None
            if isinstance(content, TrajectoryId):
                raise RewardError(f"{path.name}, line {number}: send the trajectory, not its id.")
            yield content


def _spread(contents: Sequence[Any]) -> list[Any]:
    step = max(1, math.ceil(len(contents) / MOST))
    return list(contents[::step])
