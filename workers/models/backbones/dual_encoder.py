"""Encoders of texts and pictures into one space: CLIPModel or SiglipModel of transformers, from a folder. Never
trained."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoTokenizer, CLIPModel, SiglipModel

from workers.errors import RewardError
from workers.models.backbones.picture_encoder import PictureCache
from workers.models.transformers_loading import transformers_loading
from workers.text.pictures import Picture

DUAL_ENCODERS: dict[str, Any] = {"clip": CLIPModel, "siglip": SiglipModel}
_AT_ONCE = 32  # pictures in a pass


class DualEncoder(nn.Module):
    """model: a CLIPModel or SiglipModel. name: of its weights, in keys of caches. side: pixels of its square input.
    mean, std: by channel, what its pixels are scaled by."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        side: int,
        mean: Sequence[float],
        std: Sequence[float],
    ) -> None:
        super().__init__()
        self.model = model.eval().requires_grad_(False)
        self.tokenizer, self.name, self.side = tokenizer, name, side
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1), persistent=False)
        self.size = int(self.text_embeddings(["a"]).shape[-1])

    def train(self, mode: bool = True) -> "DualEncoder":
        return super().train(False)

    @property
    def longest_text(self) -> int:
        """Tokens, those around the text included."""
        return int(self.model.config.text_config.max_position_embeddings)

    def text_embeddings(self, texts: Sequence[str]) -> Tensor:
        """[texts, size] float32 of length 1. Raises RewardError for a text that is longer than the model reads."""
        # SigLIP reads the padding: it was trained with all texts padded to one length.
        padding = "max_length" if self.model.config.model_type == "siglip" else False
        found = []
        for text in texts:
            inputs = self.tokenizer(
                [text], padding=padding, max_length=self.longest_text, truncation=False, return_tensors="pt"
            )
            count = inputs["input_ids"].shape[1]
            if count > self.longest_text:
                raise RewardError(
                    f"the text {text[:40]!r} has {count} tokens, and this model reads {self.longest_text}; describe "
                    "what is to be seen in fewer words."
                )
            ids = inputs["input_ids"].to(self.mean.device)
            with torch.no_grad():
                found.append(self.model.get_text_features(input_ids=ids).pooler_output[0].float())
        return functional.normalize(torch.stack(found), dim=-1)

    def picture_embeddings(self, pictures: Sequence[Picture], cache: PictureCache | None = None) -> Tensor:
        """[pictures, size] float32 of length 1, each picture by its content once; kept in `cache`."""
        keys = [f"likeness\0{self.name}\0{picture.digest}".encode() for picture in pictures]
        by_key = dict(zip(keys, pictures, strict=True))
        found = {} if cache is None else {key: hit for key in by_key if (hit := cache.get(key)) is not None}
        missing = [key for key in by_key if key not in found]
        for start in range(0, len(missing), _AT_ONCE):
            chosen = missing[start : start + _AT_ONCE]
            for key, embedding in zip(chosen, self._encoded([by_key[key] for key in chosen]), strict=True):
                found[key] = embedding
                if cache is not None:
                    cache.put(key, embedding)
        return torch.stack([found[key] for key in keys]).to(self.mean.device)

    @torch.no_grad()
    def _encoded(self, pictures: Sequence[Picture]) -> Tensor:
        pixels = torch.from_numpy(np.stack([picture.pixels() for picture in pictures])).to(self.mean.device)
        scaled = (pixels.permute(0, 3, 1, 2).float() / 255.0 - self.mean) / self.std
        states = self.model.get_image_features(pixel_values=scaled.to(self.model.dtype)).pooler_output
        return functional.normalize(states.float(), dim=-1).cpu()


def load_dual_encoder(
    folder: Path, weights: Path, pixels: Mapping[str, Any], *, precision: str
) -> DualEncoder:
    """Of config.json and tokenizer in a folder and a safetensors file; no remote code, no pickles.

    pixels: {name, side, mean, std}, as `DualEncoder` takes them. precision: `float32` or `bfloat16`. Raises
    RuntimeError where the tensors are not those of the configuration.
    """
    config: Any = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with transformers_loading():
        model = DUAL_ENCODERS[config.model_type](config)
    model.load_state_dict(load_file(weights), strict=True)
    model.to(torch.bfloat16 if precision == "bfloat16" else torch.float32)
    return DualEncoder(model, dual_tokenizer(folder), **pixels)


def dual_tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def pixel_settings(folder: Path) -> dict[str, Any]:
    """{side, mean, std} as the folder's image processor says. Raises RewardError where nothing says it, or where it
    does what is not done here."""
    said = _image_processor(folder)
    crop = said.get("crop_size") if said.get("do_center_crop") else None
    size = crop or said.get("size") or {}
    side = size.get("height", size.get("shortest_edge")) if isinstance(size, dict) else size
    mean, std = said.get("image_mean"), said.get("image_std")
    if not (isinstance(side, int) and isinstance(mean, list) and isinstance(std, list)):
        raise RewardError(
            f"the image processor of {folder.name} does not say size, image_mean and image_std; save it again with "
            "CLIPImageProcessor or SiglipImageProcessor."
        )
    for key in ("do_normalize", "do_rescale", "do_resize"):
        if said.get(key) is False:
            raise RewardError(
                f"the image processor of {folder.name} has {key} = false, which is not read here."
            )
    return {"side": side, "mean": mean, "std": std}


def _image_processor(folder: Path) -> dict[str, Any]:
    for path, key in (
        (folder / "preprocessor_config.json", ""),
        (folder / "processor_config.json", "image_processor"),
    ):
        if not path.is_file():
            continue
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RewardError(
                f"{path.name} of {folder.name} is not JSON ({error}); copy the file again."
            ) from None
        found = found.get(key) if key and isinstance(found, dict) else found
        if isinstance(found, dict):
            return found
    raise RewardError(
        f"{folder.name} has no preprocessor_config.json, which says how its pixels are scaled; copy it into the folder."
    )
