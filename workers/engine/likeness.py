"""Components of goal likeness: each asks the encoders of a served model for another goal."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workers.engine.batcher import ServedModel
from workers.errors import RewardError
from workers.schema.components import GoalLikenessPart, ModelPart
from workers.schema.endpoints import EndpointSpec
from workers.schema.model_score import ModelScore


def scorer_name(part: GoalLikenessPart) -> str:
    """Of the component among what is asked for scores; a model has no such name."""
    return f"goal_likeness:{part.name}"


def asked_models(spec: EndpointSpec, models: Mapping[str, ServedModel]) -> dict[str, ServedModel]:
    """What is asked for scores: the models of components, and those that look for a component's goal. Raises
    RewardError where a model compares no pictures with texts, or does not read the texts."""
    parts = [part for part in spec.components if isinstance(part, GoalLikenessPart)]
    read = {part.model for part in spec.components if isinstance(part, ModelPart) and part not in parts}
    found = {name: served for name, served in models.items() if name in read}
    for part in parts:
        served = models[part.model]
        model: Any = served.model
        if getattr(model, "goal", None) is None:
            raise RewardError(
                f"{part.model} compares no pictures with a text, so the component {part.name} cannot use it; import an "
                "encoder of texts and pictures (CLIP, SigLIP) with the type goal-likeness."
            )
        name = scorer_name(part)
        found[name] = ServedModel(name, model.looking_for(part.texts(model.goal)), served.cache)
    return found


def likeness_score(score: ModelScore) -> ModelScore:
    """As a rule's, whose steps add up to the whole: the first step earns what was seen before it, too."""
    first, *others = score.step_rewards
    return replace(score, offset=0.0, std=0.0, step_rewards=(score.offset + first, *others))
