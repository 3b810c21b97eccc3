"""A backbone's state of a trajectory, as one row of numbers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workers.active_learning.posterior import Numbers
from workers.device import choose_device
from workers.errors import RewardError
from workers.models import RewardModel, build, is_generative, load
from workers.models.backbones.step_encoder import StepEncoder, collate
from workers.schema import Trajectory
from workers.schema.recipe import Recipe
from workers.text import Chunks

_AT_ONCE = 32
_CACHE_BYTES = 1024**3


def model_features(model: RewardModel, rendered: Sequence[Any], *, cache: Any = None) -> Numbers:
    """[n, width], float64: the state a reward is read at. For the aggregation `value` that at the end; for the others,
    where every step has its part in it, the mean over steps."""
    found = []
    with torch.no_grad():
        for batch in _batches(rendered):
            states = model.backbone.states(batch, cache=cache)
            for _, steps in states.split():
                row = steps[-1] if model.aggregation == "value" else steps.mean(0)
                found.append(row.double().cpu().numpy())
    return np.array(found).reshape(len(rendered), -1)


def encoder_features(backbone: StepEncoder, rendered: Sequence[Chunks], *, cache: Any = None) -> Numbers:
    """[n, 2 hidden + numbers]: what an encoder that learnt nothing yet tells: the mean embedding of what the agent
    said, that of the last chunk, and the mean of the grounding numbers."""
    found = []
    with torch.no_grad():
        for batch in _batches(rendered):
            collated = collate(batch, backbone.renderer)
            embeddings, _ = backbone.embed(collated.chunks, cache=cache)
            for row, trajectory in enumerate(batch):
                places = collated.place[row, : len(trajectory.chunks)]
                said = places[trajectory.start :] if trajectory.start < len(places) else places
                numbers = torch.tensor(trajectory.grounding, dtype=torch.float64)[trajectory.start :]
                parts = (embeddings[said].double().mean(0), embeddings[places[-1]].double())
                found.append(torch.cat([*(part.cpu() for part in parts), numbers.mean(0)]).numpy())
    return np.array(found).reshape(len(rendered), -1)


def encode(found: Mapping[str, Trajectory], folder: Path, *, device: str) -> dict[str, Numbers]:
    """By name, the features of trajectories by the model in `folder`, or by the embedded encoder where there is
    none, or one that writes.

    What the model cannot read is left out: no one asks about what cannot be scored.
    """
    chosen = str(choose_device(device))
    has_states = folder.is_dir() and not is_generative(folder)
    loaded = load(folder, device=chosen) if has_states else None
    backbone = build(Recipe(), device=chosen).backbone if loaded is None else loaded.model.backbone
    rendered: dict[str, Any] = {}
    for name, trajectory in found.items():
        with suppress(RewardError):
            rendered[name] = backbone.renderer.render(trajectory)
    # Neighbours in length share a batch, so that little of it is padding.
    names = sorted(rendered, key=lambda name: (rendered[name].tokens, name))
    ordered = [rendered[name] for name in names]
    if loaded is not None:
        rows = model_features(loaded.model, ordered, cache=backbone.new_cache(_CACHE_BYTES))
    else:
        assert isinstance(backbone, StepEncoder)
        rows = encoder_features(backbone, ordered, cache=backbone.new_cache(_CACHE_BYTES))
    return dict(zip(names, rows, strict=True))


def _batches(rendered: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rendered), _AT_ONCE):
        yield list(rendered[start : start + _AT_ONCE])
