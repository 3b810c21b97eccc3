"""The `vision-decoder` backbone: a vision-language model of transformers without its LM head.

Each item is a forward pass of transformers' own code, which gives pictures their positions (M-RoPE of Qwen-VL types)
and masks (Gemma types attend within a picture in both directions). So nothing is shared between items, and no past is
kept.
"""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from workers.errors import RewardError
from workers.models.backbones.base import Placement
from workers.models.backbones.decoder import Decoder
from workers.models.backbones.frozen_weights import nf4_options
from workers.models.backbones.vision_processor import VisionProcessor
from workers.models.states import States, join
from workers.models.transformers_loading import transformers_loading
from workers.text import Tokens
from workers.text.seeing_conversations import SeeingConversationRenderer, SeeingTokens

_ATTENTION = "sdpa"


class VisionDecoder(Decoder):
    """Everything but the language model is frozen: the vision tower and what projects its states."""

    kind = "vision-decoder"

    def __init__(
        self, base: PreTrainedModel, renderer: SeeingConversationRenderer, processor: VisionProcessor
    ) -> None:
        super().__init__(base, renderer)
        self.processor = processor
        self._language: Any = base.get_submodule("language_model")
        accepted = inspect.signature(base.forward).parameters
        # What tells pictures from words, as this architecture calls it.
        self._kinds = "mm_token_type_ids" if "mm_token_type_ids" in accepted else "token_type_ids"
        for name, parameter in base.named_parameters():
            if not name.startswith("language_model."):
                parameter.requires_grad_(False)

    @property
    def adapter_options(self) -> dict[str, Any]:
        return {"exclude_modules": r"^(?!.*language_model\.).*$"}

    @property
    def shares(self) -> bool:
        return False

    @property
    def grows(self) -> bool:
        return False

    def blocks(self) -> Sequence[nn.Module]:
        return [*self.base.get_submodule("language_model").layers]

    def states(self, batch: Sequence[Tokens], *, cache: Any = None) -> States:
        parts = []
        for item in batch:
            states = self._alone(item)[item.places].float()
            if item.start is None:
                parts.append((states.new_zeros(self.width), states))
            else:
                parts.append((states[0], states[1:]))
        return join(parts, [0] * len(batch))

    def cost(self, batch: Sequence[Tokens]) -> int:
        return sum(len(item.ids) for item in batch)

    def work(self, batch: Sequence[Tokens]) -> float:
        return sum(
            self._cost.token * len(item.ids) + 0.5 * self._cost.pair * len(item.ids) ** 2 for item in batch
        )

    def require_exact(self) -> None:
        """Raises RewardError where the model does not take the ids that stand for a picture."""
        block = self.renderer.block  # type: ignore[attr-defined]
        item = SeeingTokens(tuple(block), (len(block) - 1,), None, False, pictures=(self.processor.blank(),))
        try:
            with torch.no_grad():
                found = self._alone(item)
        except (RuntimeError, ValueError, TypeError) as error:
            raise self._no_pictures(str(error).split("\n")[0]) from error
        if not bool(found.isfinite().all()):
            raise self._no_pictures("its states of a picture are not finite")

    def _alone(self, item: Tokens) -> Tensor:
        """[tokens, width]"""
        ids = torch.tensor([item.ids], device=self.device)
        pictures = item.pictures if isinstance(item, SeeingTokens) else ()
        given: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        given[self._kinds] = (ids == self.processor.image_token).long() if pictures else torch.zeros_like(ids)
        if pictures:
            given |= {name: value.to(self.device) for name, value in self.processor.pixels(pictures).items()}
        with self._precision():
            hidden: Tensor = self.base(**given, use_cache=False).last_hidden_state
        return hidden[0]

    def _no_pictures(self, why: str) -> RewardError:
        return RewardError(
            f"this {self.base.config.model_type} model does not read a picture: {why}. Use a model of the Qwen2-VL or "
            "Gemma 3 type, or a text model.",
            pointer="/decoder",
        )


def load_vision_base(
    folder: Path, *, device: str, dtype: torch.dtype = torch.float32, nf4: bool = False
) -> PreTrainedModel:
    """From local safetensors only; no remote code, no pickles. Raises RewardError where tensors are missing."""
    options = nf4_options(device, dtype) if nf4 else {}
    with transformers_loading():
        model, loaded = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=dtype,
            attn_implementation=_ATTENTION,
            output_loading_info=True,
            **options,
        )
    if missing := sorted(loaded["missing_keys"]):
        raise RewardError(
            f"{folder.name} lacks the tensors {', '.join(missing[:3])}; name the folder of a whole model.",
            pointer="/decoder",
        )
    found: PreTrainedModel = model
    return found


def empty_vision_base(folder: Path, placement: Placement) -> PreTrainedModel:
    """The architecture with weights still to be loaded."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    is_half = placement.precision == "bfloat16" and config.dtype == torch.bfloat16
    with transformers_loading():
        found: PreTrainedModel = AutoModel.from_config(
            config,
            trust_remote_code=False,
            attn_implementation=_ATTENTION,
            dtype=torch.bfloat16 if is_half else torch.float32,
        )
    return found
