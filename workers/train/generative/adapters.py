"""Low-rank adapters of a generative model, and the model that reinforcement may not drift far from.

With adapters the reference model is the model itself with its adapter turned off, as in TRL's GRPOTrainer: what the
earlier stages learnt is merged into its weights before, and a new adapter learns the rest. Without adapters it is a
copy.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from workers.errors import RewardError
from workers.models.generative.writer import Writer
from workers.schema.recipe import Recipe

_REFERENCE = "reference.safetensors"


def add_adapter(language: Any, recipe: Recipe) -> Any:
    """The model with an adapter that does nothing yet; nothing else of it is trained."""
    from peft import LoraConfig, get_peft_model

    options = LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,  # a float, where peft annotates an int
        target_modules="all-linear",
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(language, options)


def merge_adapter(language: Any) -> Any:
    """The model without an adapter, which gives what it gave with it."""
    merged = language.merge_and_unload()
    if hasattr(merged, "peft_config"):
        del merged.peft_config  # else peft takes a next adapter for a second one
    return merged


def trained_weights(language: nn.Module) -> dict[str, Tensor]:
    """Of what is trained, copied to the CPU."""
    return {
        name: parameter.detach().cpu().clone()
        for name, parameter in language.named_parameters()
        if parameter.requires_grad
    }


def load_weights(language: nn.Module, weights: dict[str, Tensor]) -> None:
    there = dict(language.named_parameters())
    with torch.no_grad():
        for name, weight in weights.items():
            there[name].copy_(weight)


def save_reference(language: nn.Module, folder: Path) -> None:
    """What of the model is trained, as it is where reinforcement begins."""
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{_REFERENCE}.part"
    save_file(trained_weights(language), part)
    part.replace(folder / _REFERENCE)


def load_reference(language: nn.Module, folder: Path) -> None:
    """Raises RewardError without it."""
    path = folder / _REFERENCE
    if not path.is_file():
        raise RewardError(
            f"{folder.name}/{_REFERENCE} is missing, without which reinforcement cannot be resumed; delete "
            f"{folder.name}/ to start from the beginning."
        )
    load_weights(language, load_file(path))


class ReferenceModel:
    """The model as it is now. writer: goes on to be trained; has_adapter: what is trained is an adapter alone, which
    does nothing yet, so that no copy is made."""

    def __init__(self, writer: Writer, *, has_adapter: bool) -> None:
        self.writer = writer
        self.copied: Writer | None = None
        if not has_adapter:
            language = copy.deepcopy(writer.language).eval().requires_grad_(False)
            self.copied = Writer(language, writer.renderer)
            self.copied.in_bfloat16 = writer.in_bfloat16

    @contextmanager
    def active(self) -> Iterator[Writer]:
        """To read lines by."""
        if self.copied is not None:
            yield self.copied
            return
        language: Any = self.writer.language
        with language.disable_adapter():
            yield self.writer
