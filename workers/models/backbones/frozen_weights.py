"""How the frozen weights of a decoder are kept under adapters, and how adapters become part of them."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from workers.errors import RewardError
from workers.schema.recipe import Recipe


def frozen_dtype(recipe: Recipe, device: str) -> torch.dtype:
    """Of the weights that are not trained. Where all are trained they are float32: bfloat16 has 8 bits of precision,
    and a step of a learning rate of 1e-5 changes most weights by less than that."""
    if recipe.lora_rank == 0 and not recipe.heads_only:
        return torch.float32
    if recipe.base_weights != "auto":
        return torch.float32 if recipe.base_weights == "float32" else torch.bfloat16
    is_gpu = device.startswith("cuda") and recipe.precision != "float32"
    return torch.bfloat16 if is_gpu and torch.cuda.is_bf16_supported() else torch.float32


def nf4_options(device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Options of from_pretrained. Raises RewardError without bitsandbytes."""
    if find_spec("bitsandbytes") is None:
        raise RewardError(
            "base_weights = 'nf4' needs bitsandbytes, which is not installed where this run trains. Run `pip install "
            "bitsandbytes` in the environment of the worker, or set base_weights to 'bfloat16' (four times the memory "
            "for the frozen weights).",
            pointer="/recipe/base_weights",
        )
    from transformers import BitsAndBytesConfig

    quantisation = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
    return {"quantization_config": quantisation, "device_map": {"": device}}


@dataclass(frozen=True, slots=True)
class LowRankAdapter:
    """What was learnt next to frozen weights. tensors: by the name in the base model (`layers.0.q_proj.lora_A.weight`).
    modules: last parts of the names of the linear maps."""

    tensors: dict[str, Tensor]
    rank: int
    alpha: float
    modules: tuple[str, ...]

    @classmethod
    def read(cls, adapted: Any) -> "LowRankAdapter":
        """Of a model of peft, before its adapter is merged."""
        (name,) = adapted.peft_config
        config = adapted.peft_config[name]
        tensors = {
            key.replace(f".{name}.", "."): parameter.detach().cpu().clone()
            for key, parameter in adapted.get_base_model().named_parameters()
            if ".lora_" in key
        }
        return cls(tensors, int(config.r), float(config.lora_alpha), tuple(sorted(config.target_modules)))


def merge_adapters(base: PreTrainedModel) -> None:
    """Add the adapters to the weights they adapt, in float32, and round once to bfloat16, in place.

    base: with LoRA layers of peft in place of linear maps.
    """
    from peft.tuners.lora import LoraLayer

    for parent in [*base.modules()]:
        for name, module in [*parent.named_children()]:
            if isinstance(module, LoraLayer):
                setattr(parent, name, _merged_linear(module))
    base.requires_grad_(False)
    if hasattr(base.config, "quantization_config"):
        del base.config.quantization_config
    base.is_quantized = False


def _merged_linear(layer: Any) -> nn.Module:
    """The linear map without its adapter, which is added to its weights; of bfloat16 where it was of 4 bits."""
    plain, (name,) = layer.get_base_layer(), layer.active_adapters
    weight = plain_weight(plain).float() + layer.get_delta_weight(name).float()
    if not hasattr(plain.weight, "quant_state"):
        plain.weight.data = weight.to(plain.weight.dtype)
        module: nn.Module = plain
        return module
    rows, columns = weight.shape
    linear = nn.Linear(columns, rows, bias=plain.bias is not None, device=weight.device, dtype=torch.bfloat16)
    with torch.no_grad():
        linear.weight.copy_(weight)
        if plain.bias is not None:
            linear.bias.copy_(plain.bias)
    return linear


def plain_weight(linear: Any) -> Tensor:
    """[out, in]: the weights, unpacked where they are kept in 4 bits."""
    state = getattr(linear.weight, "quant_state", None)
    if state is None:
        weight: Tensor = linear.weight.detach()
        return weight
    from bitsandbytes.functional import dequantize_4bit

    unpacked: Tensor = dequantize_4bit(linear.weight.data, state)
    return unpacked
