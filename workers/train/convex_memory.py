"""How much memory a convex fit needs, before it runs out of it.

Measured on 20,000 steps with 14 million features that are not 0, of which 474,000 were different: 963 MB with one head,
1101 MB with 8, 1443 MB with 16.
"""

from collections.abc import Sequence

from workers.errors import RewardError
from workers.memory import memory_bytes
from workers.models.backbones.design_matrix import DesignMatrix
from workers.models.backbones.linear import Readout
from workers.text import StepTexts

# Of the matrix; of the folds that a penalty is chosen on; of a weight, with the history of L-BFGS; of a deviation.
_ENTRY_BYTES, _FOLD_ENTRY_BYTES, _WEIGHT_BYTES, _DEVIATION_BYTES = 36, 26, 200, 96
_MEMORY_SHARE = 0.9


def fit_bytes(matrix: DesignMatrix, items: Sequence[StepTexts], readout: Readout, choosing_items: int) -> int:
    """About what a fit of these items needs, by the features of those that the matrix has.

    choosing_items: how many of them the penalty is chosen on, at most.
    """
    entries = matrix.expected_entries(items)
    of_folds = min(1.0, choosing_items / max(1, len(items)))
    weights = min(entries, matrix.width) * readout.outputs
    per_weight = _WEIGHT_BYTES + (_DEVIATION_BYTES * readout.heads if readout.heads > 1 else 0)
    return int(entries * (_ENTRY_BYTES + _FOLD_ENTRY_BYTES * of_folds) + weights * per_weight)


def check_memory(
    matrix: DesignMatrix, items: Sequence[StepTexts], readout: Readout, choosing_items: int
) -> None:
    """Raises RewardError where the fit would need more memory than there is."""
    needed, most = fit_bytes(matrix, items, readout, choosing_items), memory_bytes()
    if needed > _MEMORY_SHARE * most:
        raise RewardError(
            f"a fit of {len(items):,} trajectories with {sum(len(item.agent_texts) for item in items):,} agent steps "
            f"needs about {needed / 1e9:.1f} GB of memory, and the machine or container has {most / 1e9:.1f} GB; use "
            "fewer or shorter trajectories, a lower ensemble or another backbone, or give the worker more memory."
        )
