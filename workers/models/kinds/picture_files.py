"""The image encoder among a model's files. `embedded` has none: it is a part of the program."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from workers.errors import RewardError
from workers.models.backbones.encoder import files_hash
from workers.models.backbones.picture_encoder import (
    EMBEDDED,
    PictureEncoder,
    PictureStatistics,
    VisionTower,
    describe_tower,
    load_tower,
    tower_from_description,
)
from workers.models.files import tensors
from workers.schema.encoder_folder import weight_files
from workers.text.pictures import PictureReading

TOWER_WEIGHTS, TOWER_CONFIG = "image_encoder.safetensors", "image_encoder.json"


def new_picture_encoder(name: str) -> PictureEncoder | None:
    """By `image_encoder` of a recipe: none, `embedded`, or a folder. Raises RewardError."""
    if not name:
        return None
    if name == EMBEDDED:
        return PictureStatistics()
    folder = Path(name)
    if (folder / TOWER_CONFIG).is_file():  # a model of ours: of a parent
        return _saved_tower(folder)
    if not (folder / "config.json").is_file():
        raise RewardError(
            f"the image encoder folder {folder.name} has no config.json; name a folder that save_pretrained wrote.",
            pointer="/image_encoder",
        )
    return load_tower(folder, files_hash(weight_files(folder, folder.name)))


def picture_reading(encoder: PictureEncoder | None) -> PictureReading | None:
    return None if encoder is None else PictureReading(encoder.side, encoder.name)


def save_picture_encoder(encoder: PictureEncoder | None, folder: Path, name: str) -> dict[str, Any]:
    """Its part of the manifest's `backbone`. name: of the recipe."""
    if not isinstance(encoder, VisionTower):
        return {} if encoder is None else {"image_encoder": encoder.name}
    source = Path(name)
    described = (
        json.loads((source / TOWER_CONFIG).read_text(encoding="utf-8"))
        if (source / TOWER_CONFIG).is_file()
        else describe_tower(encoder, source)
    )
    save_file(tensors(encoder.tower), folder / TOWER_WEIGHTS)
    (folder / TOWER_CONFIG).write_text(
        json.dumps(described | {"name": encoder.name}) + "\n", encoding="utf-8"
    )
    return {"image_encoder": "own"}


def load_picture_encoder(folder: Path, described: dict[str, Any]) -> PictureEncoder | None:
    """described: the manifest's `backbone`. Raises RewardError where this version has no such encoder."""
    name = described.get("image_encoder")
    if name is None:
        return None
    if name == "own":
        return _saved_tower(folder)
    found = PictureStatistics()
    if name != found.name:
        raise RewardError(
            f"{folder.name} was trained on the image encoder {name!r}, and this version has {found.name!r}; train it "
            "again, or load it with the version that made it."
        )
    return found


def _saved_tower(folder: Path) -> VisionTower:
    described = json.loads((folder / TOWER_CONFIG).read_text(encoding="utf-8"))
    tower = tower_from_description(described, described["name"])
    tower.tower.load_state_dict(load_file(folder / TOWER_WEIGHTS), strict=True)
    return tower
