"""The pictures of a vision-language model: its image processor, and the ids that stand for a picture.

The image processor is the one that AutoProcessor has. It is loaded alone, since the processors of Qwen-VL types load a
processor of video as well, which needs torchvision.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoImageProcessor

from workers.errors import RewardError
from workers.models.backbones.decoder import read_config
from workers.models.transformers_loading import transformers_loading
from workers.text.pictures import Picture, PictureReading

_SIDE = 448  # pixels, of models that take pictures of any size: 256 tokens of 28 x 28 pixels each


class VisionProcessor:
    """side: pixels of the square that a picture is scaled to. image_token: the id that a patch stands for. Raises
    RewardError where it is not known how the model has pictures in its text."""

    def __init__(self, folder: Path) -> None:
        config: Any = read_config(folder)
        with transformers_loading():
            self.images: Any = AutoImageProcessor.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
        size: Any = getattr(self.images, "size", None) or {}
        self.side = int(size.get("height") or _SIDE)
        self.model_type = str(config.model_type)
        self.image_token = int(_token(config, "image_token_id", "image_token_index"))
        begins = _token(config, "vision_start_token_id", "boi_token_id", "boi_token_index")
        ends = _token(config, "vision_end_token_id", "eoi_token_id", "eoi_token_index")
        self.block = (begins, *(self.image_token,) * self._count(config), ends)

    @property
    def reading(self) -> PictureReading:
        return PictureReading(self.side, self.model_type)

    def pixels(self, pictures: Sequence[Picture]) -> dict[str, Tensor]:
        """As the model's forward takes them."""
        return self._processed([picture.pixels() for picture in pictures])

    def blank(self) -> Picture:
        return Picture("", self.side, None, np.zeros((self.side, self.side, 3), dtype=np.uint8))

    def save(self, folder: Path) -> None:
        self.images.save_pretrained(folder)

    def _processed(self, pictures: Sequence[Any]) -> dict[str, Tensor]:
        found = self.images(images=list(pictures), return_tensors="pt")
        return {name: value for name, value in found.items() if name in ("pixel_values", "image_grid_thw")}

    def _count(self, config: Any) -> int:
        """The tokens of a picture: of merged patches, or a number that the model has."""
        processed = self._processed([self.blank().pixels()])
        if (grid := processed.get("image_grid_thw")) is not None:
            return int(torch.prod(grid[0])) // int(self.images.merge_size) ** 2
        count = getattr(config, "mm_tokens_per_image", None)
        if count is None:
            raise RewardError(
                f"it is not known here how many tokens a picture has in a {config.model_type} model; use a model of "
                "the Qwen2-VL or Gemma 3 type, or a text model.",
                pointer="/decoder",
            )
        return int(count)


def _token(config: Any, *names: str) -> int:
    found = next((value for name in names if (value := getattr(config, name, None)) is not None), None)
    if found is None:
        raise RewardError(
            f"the configuration of this {config.model_type} model has no {names[0]}, so it is not known how pictures "
            "stand in its text; use a model of the Qwen2-VL or Gemma 3 type, or a text model.",
            pointer="/decoder",
        )
    return int(found)
