"""Channels: which columns of a linear model's features belong together, so that a model can do without some."""

from collections.abc import Collection
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workers.models.backbones.condition_entries import FIRST_CONDITION
from workers.models.backbones.step_entries import FIRST_EMBEDDING, FIRST_STRUCTURE
from workers.schema.recipe_help import CHANNELS, Channel
from workers.text import STRUCTURE
from workers.text.ngrams import COLUMNS
from workers.text.overlap import NAMES as OVERLAP

_BOUNDS = (COLUMNS, 2 * COLUMNS, FIRST_STRUCTURE, FIRST_EMBEDDING, FIRST_CONDITION)
_BETWEEN: tuple[Channel, ...] = (
    "words",
    "characters",
    "observations",
    "structure",
    "embedding",
    "conditions",
)
_OVERLAP_COLUMNS = np.array([FIRST_STRUCTURE + STRUCTURE.index(name) for name in OVERLAP])


def is_in_channels(columns: NDArray[np.integer], channels: Collection[Channel]) -> NDArray[np.bool_]:
    """[columns]: whether each belongs to one of the channels."""
    names = [*CHANNELS]
    found = np.array([names.index(name) for name in _BETWEEN])[np.searchsorted(_BOUNDS, columns, "right")]
    found[np.isin(columns, _OVERLAP_COLUMNS)] = names.index("overlap")
    return np.isin(found, [names.index(name) for name in channels])


@lru_cache(maxsize=8)
def read_columns(width: int, channels: tuple[Channel, ...]) -> NDArray[np.bool_] | None:
    """[width]: which columns a model of these channels reads; None for all, which no channels are."""
    return is_in_channels(np.arange(width), channels) if channels else None
