"""Linear models with random weights, for the features of the texts that they are given."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from workers.models import Lineage, LoadedModel, build, save
from workers.models.backbones.linear import LinearBackbone
from workers.schema import Part, Step, Task, ToolCall, Trajectory
from workers.schema.recipe import parse_recipe
from workers.schema.records import ObservationResult
from workers.text import Content


def linear_model(known: Sequence[Content], *, reward_from: Any = "scalar", **values: Any) -> LoadedModel:
    """values: of the recipe; also of a hybrid one."""
    recipe = parse_recipe({"backbone": "linear", "ensemble": 4} | values)
    labels = ("good", "bad") if reward_from == "labels" else ()
    model = build(recipe, labels=labels, reward_from=reward_from)
    backbone = model.backbone
    assert isinstance(backbone, LinearBackbone)
    rendered = [backbone.renderer.render(content) for content in known]
    backbone.prepare_with(rendered, backbone.new_cache(0))
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        backbone.weight.copy_(torch.randn(backbone.weight.shape, generator=random, dtype=torch.double))
        backbone.intercept.fill_(0.3)
        deviations = torch.randn(backbone.deviations.shape, generator=random, dtype=torch.double)
        backbone.deviations.copy_(deviations - deviations.mean(1, keepdim=True))
        backbone.prior.fill_(0.1)
    manifest = {"reward": {"median": 0.1, "std": 0.7}, "aggregation": recipe.aggregation}
    return LoadedModel(model, manifest)


def save_linear(model: LoadedModel, folder: Path, **values: Any) -> Path:
    """values: those of the recipe that `linear_model` had."""
    recipe = parse_recipe({"backbone": "linear", "ensemble": 4} | values)
    reward = model.manifest["reward"]
    save(model.model, folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return folder


def agent(text: str, *, reasoning: str | None = None, call: str = "", observation: str = "") -> Step:
    return Step(
        source="agent",
        message=(Part(text=text),),
        reasoning=reasoning,
        tool_calls=(ToolCall(name="find", arguments={"order": call}),) if call else (),
        observation=(ObservationResult(content=(Part(text=observation),)),) if call else (),
    )


def asked(*steps: Step) -> Trajectory:
    question = Step(source="user", message=(Part(text="Where is the order?"),))
    return Trajectory(steps=(question, *steps), task=Task(id="t"))
