"""Which output of a classifier is the reward, and what becomes of the others."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from workers.errors import RewardError
from workers.models.files import HEADS
from workers.schema.import_options import ImportOptions

_MOST_NAME = 80


@dataclass(frozen=True, slots=True)
class RewardOutput:
    """names: of all outputs, in order. reward: places in them, and what each counts."""

    names: tuple[str, ...]
    reward: tuple[tuple[int, float], ...]

    @property
    def words(self) -> str:
        if len(self.names) == 1:
            return "the model's one output, its logit"
        if len(self.reward) == 1:
            return f"the logit of {self.names[self.reward[0][0]]}"
        good, bad = (self.names[place] for place, _ in self.reward)
        return f"the logit of {good} less that of {bad}"


def choose_output(known: tuple[str, ...], options: ImportOptions, *, required: bool = True) -> RewardOutput:
    """known: names of the outputs, as the checkpoint has them. required: whether one of several has to be named.

    Raises RewardError where it cannot be told which is the reward.
    """
    names = known
    if options.labels:
        names = tuple(name.strip() for name in options.labels.split(","))
        if len(names) != len(known):
            raise RewardError(
                f"labels names {len(names)} outputs, and the model has {len(known)}.",
                pointer="/options/labels",
            )
    names = tuple(name[:_MOST_NAME] for name in names)
    if len(set(names)) < len(names) or not all(names):
        raise RewardError(
            f"the outputs of the model need names that differ, not {', '.join(names)}; give them with labels.",
            pointer="/options/labels",
        )
    if options.label:
        reward = [(_place(names, options.label, "label"), 1.0)]
        if options.against:
            reward.append((_place(names, options.against, "against"), -1.0))
            if reward[0][0] == reward[1][0]:
                raise RewardError(
                    "label and against name the same output; name two.", pointer="/options/against"
                )
        return RewardOutput(names, tuple(reward))
    if options.against:
        raise RewardError(
            "against needs label, the output it is subtracted from.", pointer="/options/against"
        )
    if len(names) > 1 and required:
        raise RewardError(
            f"the model has the outputs {', '.join(names)}; say which is the reward with label, and with against which "
            "one is subtracted from it, where one is.",
            pointer="/options/label",
        )
    return RewardOutput(names, ((0, 1.0),))


def _place(names: tuple[str, ...], wanted: str, option: str) -> int:
    if wanted in names:
        return names.index(wanted)
    if wanted.isdecimal() and int(wanted) < len(names):
        return int(wanted)
    raise RewardError(
        f"{option} = {wanted!r} is no output of the model; it has {', '.join(names)}.",
        pointer=f"/options/{option}",
    )


def criteria_of(output: RewardOutput) -> dict[str, dict[str, Any]]:
    """The outputs of a model of several as criteria, in the model's own numbers."""
    if len(output.names) == 1:
        return {}
    return {name: {"text": name, "scale": [0.0, 1.0]} for name in output.names}


def save_output_heads(
    output: RewardOutput, weight: Tensor, folder: Path, *, bias: Tensor | None = None
) -> dict[str, Any]:
    """Writes heads.safetensors; its part of the manifest. weight: [outputs, width]; bias: [outputs]."""
    weight = weight.float()
    width, several = weight.shape[1], len(output.names) > 1
    tensors = {"scalar.weight": _combined(output, weight).reshape(1, 1, width)}
    if several:
        tensors["criterion.weight"] = weight.unsqueeze(0)
    if bias is not None:
        tensors["scalar.bias"] = _combined(output, bias.float()).reshape(1, 1)
        if several:
            tensors["criterion.bias"] = bias.float().unsqueeze(0)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / HEADS)
    return heads_part(output, width, bias=bias is not None)


def heads_part(output: RewardOutput, width: int, *, bias: bool = False) -> dict[str, Any]:
    several = len(output.names) > 1
    return {
        "width": width,
        "ensemble": 1,
        "inner": 0,
        "labels": [],
        "criteria": several,
        "dropout": 0.0,
        "named_criteria": [*output.names] if several else [],
        "bias": bias,
    }


def _combined(output: RewardOutput, rows: Tensor) -> Tensor:
    return torch.stack([rows[place] * share for place, share in output.reward]).sum(0)
