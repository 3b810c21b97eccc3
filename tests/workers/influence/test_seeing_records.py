"""Tracing the reward of a model that sees: the records are read with their pictures, and so is the item."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from workers.influence.record_influence import trace
from workers.models import load
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory, parse_item
from workers.schema.picture_archive import PICTURES, write_pictures
from workers.schema.pictures import picture_bytes
from workers.schema.recipe import Recipe
from workers.text.pictures import forget_pictures
from workers.train.pipeline import train

FLIPPED = 5


def url(colour: tuple[int, int, int], number: int = 0) -> str:
    return data_url(file_of(coloured(colour, width=60 + number, height=40 + 2 * number)))


@pytest.fixture
def traced(run_directory: Any, tiny_recipe: Recipe, tmp_path: Path) -> Path:
    """Of a model trained on comparisons of equal text, in which red is better, and once blue."""
    files: dict[str, bytes] = {}

    def side(colour: tuple[int, int, int], number: int) -> Trajectory:
        file = picture_bytes(url(colour, number))
        files[file.digest] = file.data
        parts = (Part(text="Look."), Part(type="image", source=f"sha256:{file.digest}"))
        steps = (Step(source="user", message=parts), Step(source="agent", message=(Part(text="Done."),)))
        return Trajectory(steps=steps, task=Task(id=f"t{number}"))

    records = [
        PreferenceRecord(
            a=side(RED, number),
            b=side(BLUE, number),
            choice="b" if number == FLIPPED else "a",
            annotator="ann",
        )
        for number in range(22)
    ]
    recipe = dataclasses.replace(tiny_recipe, image_encoder="embedded", epochs=12, ensemble=1)
    run = run_directory(recipe, splits={"train": records[:18], "validation": records[18:]})
    write_pictures(run / "data" / PICTURES, files.items())
    train(run)
    forget_pictures()
    folder = tmp_path / "tracing"
    shutil.copytree(run / "data", folder / "data")
    shutil.copytree(run / "model", folder / "parent" / "model")
    shutil.copy(run / "config.json", folder)
    return folder


def test_the_record_that_says_the_opposite_lowers_the_reward_of_a_red_picture(traced: Path) -> None:
    found = {}
    model = load(traced / "parent" / "model")
    for name, colour in (("red", RED), ("blue", BLUE)):
        part = {"type": "image_url", "image_url": {"url": url(colour)}}
        item = {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look."}, part]},
                {"role": "assistant", "content": "Done."},
            ]
        }
        (traced / "item.json").write_text(json.dumps(item))
        try:
            found[name] = trace(traced)
        finally:
            forget_pictures()
        (score,) = model.score([model.render(parse_item(item).content)])
        assert found[name]["reward"] == pytest.approx((score.raw - model.median) / model.std, abs=1e-4)
    assert found["red"]["reward"] > found["blue"]["reward"] and found["red"]["records"] == 18
    moved = {change["record"]: change["by"] for change in found["red"]["moved"]}
    assert min(moved, key=lambda place: moved[place]) == FLIPPED and moved[FLIPPED] < 0
