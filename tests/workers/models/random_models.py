"""Artifacts of models with random weights, of every backbone that reads text."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.workers.decoders import save_decoder
from workers.models import Lineage, build, save
from workers.models.backbones.linear import LinearBackbone
from workers.schema import Trajectory
from workers.schema.recipe import Recipe, parse_recipe

KINDS = ("linear", "hybrid", "step-encoder", "decoder")


def save_random(
    kind: str, folder: Path, known: Sequence[Trajectory], *, tiny: Recipe, encoder: Path, **values: Any
) -> Path:
    """The artifact of a model of this kind. known: what linear models have features of. values: of the recipe."""
    recipes: dict[str, Callable[[], Recipe]] = {
        "linear": lambda: parse_recipe({"backbone": "linear", "ensemble": 4}),
        "hybrid": lambda: parse_recipe({"backbone": "hybrid", "encoder": str(encoder), "chunk_tokens": 16}),
        "step-encoder": lambda: tiny,
        "decoder": lambda: parse_recipe(
            {
                "backbone": "decoder",
                "decoder": str(save_decoder(folder / "base")),
                "max_tokens": 256,
                "lora_rank": 0,
            }
        ),
    }
    recipe = dataclasses.replace(recipes[kind](), **values)
    torch.manual_seed(3)
    model = build(recipe)
    if isinstance(model.backbone, LinearBackbone):
        rendered = [model.backbone.renderer.render(content) for content in known]
        model.backbone.prepare_with(rendered, model.backbone.new_cache(0))
        with torch.no_grad():
            model.backbone.weight.copy_(torch.randn(model.backbone.weight.shape))
    lineage = Lineage(snapshot={"name": "p/d@1", "hash": "h"}, code_version="1")
    reward = {"median": 0.0, "std": 1.0}
    save(model, folder / "model", recipe=recipe, reward=reward, criteria={}, lineage=lineage)
    return folder / "model"
