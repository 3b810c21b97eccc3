"""How far what a model reads lies from what it was trained on: the flag `out_of_distribution`.

Mahalanobis distance of the state at a trajectory's end (Lee et al. 2018, arXiv 1807.03888, section 2.1, with one class)
under probabilistic PCA (Tipping and Bishop 1999): full variance along the leading components, one for all others, so
that few trajectories are enough. The limit is a quantile of the distances of training trajectories, each measured by
those of other folds; and no less than that of trajectories of other tasks, where there are some: what a policy
does in a task that no one judged is not strange for that alone.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

FILE = "familiar.safetensors"  # what it was called; models keep their files
FEWEST = 50  # trajectories below which nothing can be said of others
FEWEST_OTHERS = 20
MOST = 20_000
FOLDS = 5
FLAGGED = 0.005  # of what it was trained on
_MOST_COMPONENTS = 64
_PER_COMPONENT = 10  # trajectories


@dataclass(frozen=True, slots=True)
class OodDetector:
    """mean: [width]. axes: [components, width], orthonormal. spread: [components], standard deviations along them.
    rest: that along any other direction. limit: the distance beyond which something is out of distribution."""

    mean: Tensor
    axes: Tensor
    spread: Tensor
    rest: Tensor
    limit: Tensor

    @classmethod
    def fit(cls, states: Tensor, others: Tensor | None = None) -> "OodDetector | None":
        """states: [trajectories, width], at their ends; others: of tasks that were not trained on. None for fewer than
        FEWEST; of more than MOST, some."""
        order = torch.randperm(len(states), generator=torch.Generator().manual_seed(0))[:MOST]
        states = states[order].double().cpu()
        count = len(states)
        if count < FEWEST:
            return None
        fold = torch.arange(count) % FOLDS
        distances = torch.empty(count, dtype=torch.double)
        for held_out in range(FOLDS):
            out = fold == held_out
            distances[out] = _fitted(states[~out], limit=1.0)._distances(states[out])
        limit = _quantile(distances)
        if others is not None and len(others) >= FEWEST_OTHERS:
            limit = max(limit, _quantile(_fitted(states, limit=1.0)._distances(others.double().cpu())))
        return _fitted(states, limit=limit)

    def ood_scores(self, states: Tensor) -> list[float]:
        """[trajectories, width] -> distance over the limit: above 1 is out of distribution."""
        found: list[float] = (self._distances(states.double().cpu()) / self.limit).tolist()
        return found

    def save(self, folder: Path) -> None:
        parts = {name: getattr(self, name).contiguous() for name in self.__dataclass_fields__}
        save_file(parts, folder / FILE)

    def _distances(self, states: Tensor) -> Tensor:
        off = states - self.mean
        along = off @ self.axes.T
        rest = (off.square().sum(-1) - along.square().sum(-1)).clamp(min=0)
        others = max(off.shape[1] - len(self.axes), 1)
        squares = (along / self.spread).square().sum(-1) + rest / self.rest.square()
        return (squares / (len(self.axes) + others)).sqrt()


def _quantile(distances: Tensor) -> float:
    """One place further out than the quantile of so many says (Vovk et al. 2005, conformal prediction)."""
    place = min(len(distances) - 1, int((1 - FLAGGED) * (len(distances) + 1)))
    return float(distances.sort().values[place])


def load_ood_detector(folder: Path) -> OodDetector | None:
    """None for a model that does not know: made by an earlier version, or of few trajectories."""
    if not (folder / FILE).is_file():
        return None
    return OodDetector(**load_file(folder / FILE))


def _fitted(states: Tensor, *, limit: float) -> OodDetector:
    count, width = states.shape
    mean = states.mean(0)
    off = states - mean
    variances, axes = torch.linalg.eigh(off.T @ off / max(count - 1, 1))
    variances, axes = variances.flip(0).clamp(min=0), axes.T.flip(0)
    keep = max(1, min(_MOST_COMPONENTS, count // _PER_COMPONENT, width - 1))
    rest = variances[keep:].sum() / max(width - keep, 1)
    # A direction that never varied is not infinitely telling.
    floor = 1e-6 * variances.sum().clamp(min=1e-12) / width
    return OodDetector(
        mean=mean,
        axes=axes[:keep],
        spread=variances[:keep].clamp(min=floor).sqrt(),
        rest=rest.clamp(min=floor).sqrt(),
        limit=torch.tensor(limit, dtype=torch.double),
    )
