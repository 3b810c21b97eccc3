"""The linear map that makes the outputs of a classifier: taken off it, and put back."""

from dataclasses import dataclass

from torch import nn

from workers.errors import RewardError

# Their places in the classes of transformers, the outermost first.
_PLACES = ("score", "classifier", "classifier.out_proj", "classification_head.out_proj", "logits_proj")


@dataclass(frozen=True, slots=True)
class LastMap:
    """name: of the module in its model. width: of what it reads."""

    name: str
    width: int
    bias: bool


def find_last_map(model: nn.Module, labels: int) -> tuple[LastMap, nn.Linear]:
    """Raises RewardError where the model has none at a known place."""
    modules = dict(model.named_modules())
    for name in _PLACES:
        module = modules.get(name)
        if isinstance(module, nn.Linear) and module.out_features == labels:
            return LastMap(name, module.in_features, module.bias is not None), module
    raise RewardError(
        f"a {type(model).__name__} has no linear map to {labels} outputs at a known place ({', '.join(_PLACES)}), so "
        "it cannot be imported."
    )


def detach_last_map(model: nn.Module, labels: int) -> LastMap:
    """Replaces it by the identity: the model's outputs are then what it read."""
    found, _ = find_last_map(model, labels)
    parent, _, child = found.name.rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())
    return found
