"""Active learning with a model that sees: trajectories of equal text and other pictures have other features."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.picture_files import BLUE, RED, coloured, file_of
from tests.workers.active_learning.test_select import _folder
from workers.active_learning.select import select_items
from workers.active_learning.selection_folder import read_features
from workers.models import Lineage, build, save
from workers.schema import Part, Step, Task, Trajectory, write_trajectories
from workers.schema.picture_archive import PICTURES, write_pictures
from workers.schema.recipe import Recipe
from workers.text.pictures import forget_pictures

DIGESTS = {"red": "0" * 63 + "a", "blue": "0" * 63 + "b"}


def looked(name: str, colour: str) -> Trajectory:
    picture = Part(type="image", source=f"sha256:{DIGESTS[colour]}")
    steps = (
        Step(source="user", message=(Part(text="Look."), picture)),
        Step(source="agent", message=(Part(text="Done."),)),
    )
    return Trajectory(steps=steps, task=Task(id="t"), id=name)


@pytest.mark.parametrize("image_encoder", ["embedded", ""])
def test_features_tell_pictures_apart_where_the_model_sees(tmp_path: Path, image_encoder: str) -> None:
    folder = _folder(tmp_path / "selection")
    runs = [looked("0-0", "red"), looked("0-1", "blue")]
    write_trajectories(folder / "new.jsonl.zst", runs)
    files = [(DIGESTS[name], file_of(coloured(colour))) for name, colour in (("red", RED), ("blue", BLUE))]
    write_pictures(folder / PICTURES, files)
    torch.manual_seed(7)
    recipe = Recipe(width=16, attention_heads=2, ensemble=1, max_tokens=400, image_encoder=image_encoder)
    (folder / "model").mkdir()
    reward = {"median": 0.0, "std": 1.0}
    save(build(recipe), folder / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    try:
        assert select_items(folder)["encoded"] == 2
    finally:
        forget_pictures()
    features = read_features(folder / "features")
    assert np.allclose(features["0-0"], features["0-1"], atol=1e-6) == (image_encoder == "")
