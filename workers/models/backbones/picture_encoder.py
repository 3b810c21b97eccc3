"""Image encoders: pictures to numbers of the whole and of each cell of a grid over it. Never trained.

`embedded` is `picture_statistics`; any other is a vision tower of transformers from a folder.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel

from workers.errors import RewardError
from workers.models.backbones.picture_statistics import CELLS, GRID, SIDE, SIZE, picture_statistics
from workers.models.transformers_loading import transformers_loading
from workers.text.pictures import Picture

EMBEDDED = "embedded"
STATISTICS_VERSION = 1  # of `picture_statistics`; raised where its numbers change, which models read
_AT_ONCE = 16  # pictures in a pass
_PREPROCESSOR = "preprocessor_config.json"


class PictureCache(Protocol):
    """`ChunkCache`, or the part of one that belongs to a project."""

    def get(self, key: bytes) -> Tensor | None: ...
    def put(self, key: bytes, embedding: Tensor) -> None: ...


class PictureEncoder(nn.Module, ABC):
    """name: of it and its weights, in keys of caches. side: pixels of its square input. size: numbers of a cell."""

    name: str
    side: int
    size: int

    @abstractmethod
    def encode(self, pictures: Sequence[Picture]) -> Tensor:
        """[pictures, CELLS, size] float32, on the device of the encoder."""

    def embed(self, pictures: Sequence[Picture], cache: PictureCache | None = None) -> Tensor:
        """The same, each by its content once where there is a cache."""
        keys = [f"picture\0{self.name}\0{picture.digest}".encode() for picture in pictures]
        found = [None if cache is None else cache.get(key) for key in keys]
        missing = [place for place, hit in enumerate(found) if hit is None]
        for start in range(0, len(missing), _AT_ONCE):
            places = missing[start : start + _AT_ONCE]
            with torch.no_grad():
                encoded = self.encode([pictures[place] for place in places]).cpu()
            for place, embedding in zip(places, encoded, strict=True):
                found[place] = embedding.flatten()
                if cache is not None:
                    cache.put(keys[place], embedding.flatten())
        return torch.stack([hit for hit in found if hit is not None]).view(len(pictures), CELLS, self.size)


class PictureStatistics(PictureEncoder):
    name, side, size = f"{EMBEDDED}-{STATISTICS_VERSION}", SIDE, SIZE

    def encode(self, pictures: Sequence[Picture]) -> Tensor:
        return torch.from_numpy(np.stack([picture_statistics(picture.pixels()) for picture in pictures]))


class VisionTower(PictureEncoder):
    """tower: of transformers, whose states are patches, or a map of features. mean, std: by channel, what its pixels
    are scaled by."""

    def __init__(
        self, tower: nn.Module, name: str, side: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__()
        self.tower = tower.eval().requires_grad_(False)
        self.name, self.side = name, side
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1), persistent=False)
        with torch.no_grad():
            self.size = self._cells(torch.zeros(1, 3, side, side)).shape[-1]

    def train(self, mode: bool = True) -> "VisionTower":
        return super().train(False)

    def encode(self, pictures: Sequence[Picture]) -> Tensor:
        pixels = torch.from_numpy(np.stack([picture.pixels() for picture in pictures]))
        mean: Any = self.mean
        scaled = pixels.to(mean.device).permute(0, 3, 1, 2).to(mean.dtype) / 255.0
        return self._cells((scaled - mean) / self.std)

    def _cells(self, pixels: Tensor) -> Tensor:
        """[pictures, CELLS, size] of [pictures, 3, side, side]: the encoder's own summary where it has one, else the
        mean; then the mean of the patches in each cell."""
        out: Any = self.tower(pixel_values=pixels)
        states = out.last_hidden_state
        if states.dim() == 3:  # [pictures, other tokens and patches, size]
            across = self._patches_across(states.shape[1])
            patches = states[:, states.shape[1] - across * across :]
            maps = patches.transpose(1, 2).unflatten(2, (across, across))
        else:
            maps = states
        cells = functional.adaptive_avg_pool2d(maps, GRID).flatten(2).transpose(1, 2)
        summary = getattr(out, "pooler_output", None)
        whole = maps.mean((2, 3)) if summary is None else summary.flatten(1)
        if whole.shape[-1] != cells.shape[-1]:
            whole = maps.mean((2, 3))
        return torch.cat([whole.unsqueeze(1), cells], 1).float()

    def _patches_across(self, tokens: int) -> int:
        config: Any = self.tower.config
        patch = getattr(config, "patch_size", None)
        across = self.side // patch if isinstance(patch, int) and patch else 0
        if not across or across * across > tokens:
            raise RewardError(
                f"the image encoder's {type(self.tower).__name__} gives {tokens} states for a picture of {self.side} "
                "pixels, which are not one for each patch; use a vision transformer (CLIP, SigLIP, DINOv2) or a "
                "convolutional network.",
                pointer="/image_encoder",
            )
        return across


def load_tower(folder: Path, name: str) -> VisionTower:
    """From local safetensors only; no remote code, no pickles. Raises RewardError.

    folder: of a vision model, or of one of text and pictures, whose vision tower is taken. name: see PictureEncoder.
    """
    with transformers_loading():
        try:
            loaded: Any = AutoModel.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise RewardError(
                f"transformers cannot load the image encoder folder {folder.name}: {error}",
                pointer="/image_encoder",
            ) from error
    model, report = loaded
    if lacking := sorted(report["missing_keys"]):
        raise RewardError(
            f"the image encoder folder {folder.name} lacks weights of its {type(model).__name__}: "
            f"{', '.join(lacking[:3])}; save it again with save_pretrained.",
            pointer="/image_encoder",
        )
    return _tower(model, folder, name)


def tower_from_description(described: dict[str, Any], name: str) -> VisionTower:
    """The architecture of what `describe_tower` gave, with weights still to be loaded."""
    values = dict(described["config"])
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    with transformers_loading():
        tower = _tower_of(AutoModel.from_config(config, trust_remote_code=False))
    return VisionTower(tower, name, described["side"], described["mean"], described["std"])


def describe_tower(tower: VisionTower, folder: Path) -> dict[str, Any]:
    """As JSON. folder: that it was loaded from."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    mean: Any = tower.mean
    std: Any = tower.std
    return {
        "config": config,
        "side": tower.side,
        "mean": mean.flatten().tolist(),
        "std": std.flatten().tolist(),
    }


def _tower(model: Any, folder: Path, name: str) -> VisionTower:
    tower = _tower_of(model)
    if getattr(tower, "main_input_name", "") != "pixel_values":
        raise RewardError(
            f"the folder {folder.name} holds {type(model).__name__}, which reads no pictures; name a vision model such "
            "as CLIP, SigLIP or DINOv2.",
            pointer="/image_encoder",
        )
    path = folder / _PREPROCESSOR
    said = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    mean, std = (said.get(key) or [0.5, 0.5, 0.5] for key in ("image_mean", "image_std"))
    return VisionTower(tower, name, _side(said, tower.config, folder), mean, std)


def _tower_of(model: Any) -> Any:
    """Of a model of text and pictures the vision tower."""
    return model.vision_model if hasattr(model, "text_model") and hasattr(model, "vision_model") else model


def _side(said: dict[str, Any], config: Any, folder: Path) -> int:
    """What its own preprocessing crops to, else resizes to, else what it was made for."""
    for key in ("crop_size", "size"):
        value = said.get(key)
        found = value.get("height", value.get("shortest_edge")) if isinstance(value, dict) else value
        if isinstance(found, int):
            return found
    found = getattr(config, "image_size", None)
    if isinstance(found, int) and found > 0:
        return found
    raise RewardError(
        f"neither {_PREPROCESSOR} nor config.json of {folder.name} says the size of a picture; copy "
        f"{_PREPROCESSOR} into the folder.",
        pointer="/image_encoder",
    )
