"""Whether the loaded models of a spec can serve it together."""

import math
from collections.abc import Mapping
from typing import Any

from workers.engine.batcher import ServedModel
from workers.engine.item_score import ItemScore
from workers.errors import RewardError
from workers.schema.components import RewardModelPart
from workers.schema.endpoints import EndpointSpec, step_transform_problem
from workers.schema.transforms import Delta

# Objectives that train a value at the last step only.
_COMPARING = frozenset({"bradley_terry", "plackett_luce"})


def require_usable_models(spec: EndpointSpec, models: Mapping[str, ServedModel]) -> None:
    """Raises RewardError for a model without reward statistics, or without the criterion head that the spec needs."""
    for served in models.values():
        if not (math.isfinite(served.model.median) and 0 < served.model.std < math.inf):
            raise RewardError(
                f"{served.name} has no usable reward statistics (median {served.model.median}, standard "
                f"deviation {served.model.std}); train it on trajectories it can distinguish."
            )
        if spec.criteria(served.name) and not served.model.scores_criteria:
            raise RewardError(
                f"{served.name} scores no criteria; train one on rubric scores, or a judge with `principles = true`."
            )


def common_aggregation(spec: EndpointSpec, models: Mapping[str, ServedModel]) -> str:
    """The aggregation of the models; rules alone are summed. Raises RewardError where models differ, or where delta
    has nothing to do."""
    names = {
        component.model
        for component in spec.components
        if isinstance(component, RewardModelPart) and component.weight
    }
    found = sorted({models[name].model.aggregation for name in names})
    if len(found) > 1:
        raise RewardError(
            f"the components aggregate their steps differently ({', '.join(found)}); "
            "their step rewards cannot be added. Deploy models of one aggregation together."
        )
    if found == ["value"] and any(isinstance(transform, Delta) for transform in spec.transforms):
        raise RewardError(
            "delta makes differences of step scores, and the steps of this model (aggregation value) are differences "
            "already; remove the transform."
        )
    aggregation = found[0] if found else "sum"
    if (problem := step_transform_problem(spec, aggregation)) is not None:
        raise RewardError(problem)
    return aggregation


def learnt_from_comparisons(manifest: Mapping[str, Any]) -> bool:
    """Whether all that trained the reward are comparisons and rankings of whole trajectories. A `joint` model says what
    trained it by the number of examples of each objective (older ones do not, and are not said to be)."""
    counts = manifest.get("by_objective")
    if not isinstance(counts, Mapping) or not any(counts.values()):
        return manifest.get("objective") in _COMPARING
    return {name for name, count in counts.items() if count} <= _COMPARING


def require_finite(score: ItemScore, index: int) -> None:
    """Raises RewardError at `/<index>`."""
    numbers = (score.reward, score.raw, score.offset, score.std or 0.0, *score.steps)
    if not all(map(math.isfinite, numbers)):
        raise RewardError("The components add up to no finite reward for this item.", pointer=f"/{index}")
