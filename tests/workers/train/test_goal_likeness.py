"""A model of goal likeness learns from comparisons, and says whether that was better than not learning."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from tests.workers.dual_encoders import import_dual_encoder
from workers.errors import RewardError
from workers.models import load
from workers.models.files import file_hash
from workers.schema import Part, PreferenceRecord, Step, Task, Trajectory
from workers.schema.parents import manifest_recipe, require_parent
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.pipeline import train

RunDirectory = Callable[..., Path]


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_dual_encoder(tmp_path_factory.mktemp("parent"))


def recipe_of(parent: Path, **values: Any) -> Recipe:
    manifest = json.loads((parent / "touchstone.json").read_text())
    return parse_recipe(manifest_recipe(manifest, name=str(parent)) | values)


def side(colour: tuple[int, int, int], number: int) -> Trajectory:
    red, green, blue = colour
    image = coloured((red, green + number, blue))
    seen = Part(type="image", source=data_url(file_of(image)), media_type="image/png")
    steps = (
        Step(source="user", message=(Part(text="Make the page."),)),
        Step(source="agent", message=(seen,)),
    )
    return Trajectory(steps=steps, task=Task(id=f"t{number}"))


def splits(parent: Path, *, against_zero_shot: bool) -> dict[str, list[PreferenceRecord]]:
    """People prefer what the encoders like less, or more."""
    model = load(parent)
    red, blue = (score.raw for score in model.score([model.render(side(each, 1)) for each in (RED, BLUE)]))
    choice: Any = "a" if (red < blue) == against_zero_shot else "b"
    records = [
        PreferenceRecord(a=side(RED, number), b=side(BLUE, number), choice=choice, annotator="ann")
        for number in range(28)
    ]
    return {"train": records[:14], "validation": records[14:18], "test": records[18:]}


def test_comparisons_are_learnt_where_the_encoders_were_wrong(
    parent: Path, run_directory: RunDirectory
) -> None:
    recipe = recipe_of(parent, epochs=12, learning_rate=0.03)
    folder = run_directory(recipe, splits=splits(parent, against_zero_shot=True))
    found = train(folder)["zero_shot"]
    assert found["pairs"] == 10 and found["zero_shot"] <= 0.2 and found["adapted"] >= 0.9
    assert found["is_better"] and found["interval"][0] > 0 and 0 <= found["alpha"]["adapted"] <= 1
    assert "better than zero-shot" in (folder / "events.jsonl").read_text()
    adapted = load(folder / "model")
    assert file_hash(folder / "model" / "model.safetensors") == file_hash(parent / "model.safetensors")
    assert adapted.manifest["likeness"] == load(parent).manifest["likeness"]
    score, after = (
        model.score([model.render(side(RED, 99))])[0].raw for model in (adapted, load(folder / "model"))
    )
    assert score == pytest.approx(after, abs=1e-5)
    # Of another goal, and in the bound of a component, the encoders are as they were imported.
    texts = adapted.goal
    assert texts is not None
    asked = adapted.looking_for(texts)
    assert -1 <= asked.score([asked.render(side(RED, 99))])[0].raw <= 1
    require_parent(recipe_of(folder / "model"), adapted.manifest)


def test_what_is_no_better_than_zero_shot_says_so(parent: Path, run_directory: RunDirectory) -> None:
    recipe = recipe_of(parent, epochs=1)
    folder = run_directory(recipe, splits=splits(parent, against_zero_shot=False))
    found = train(folder)["zero_shot"]
    assert found["zero_shot"] >= 0.8 and found["difference"] == pytest.approx(0, abs=0.2)
    assert not found["is_better"]
    assert "not shown to be better than zero-shot" in (folder / "events.jsonl").read_text()


def test_a_parent_passes_on_what_it_has_learnt(parent: Path, run_directory: RunDirectory) -> None:
    against = splits(parent, against_zero_shot=True)
    first = run_directory(recipe_of(parent, epochs=12, learning_rate=0.03), splits=against)
    train(first)
    recipe = recipe_of(first / "model", epochs=1, learning_rate=1e-6)
    second = run_directory(recipe, splits=against, parent={"name": "desk/first@1"})
    shutil.copytree(first / "model", second / "parent" / "model")
    found = train(second)["zero_shot"]
    assert found["adapted"] >= 0.9 and found["zero_shot"] <= 0.2 and found["is_better"]
    manifest = load(second / "model").manifest
    assert manifest["parent"] == {"name": "desk/first@1"} and manifest["backbone"]["lora_rank"] == 8


@pytest.mark.parametrize(
    ("values", "pointer"),
    [({"objective": "process"}, "/objective"), ({"heads_only": True}, "/heads_only")],
)
def test_what_it_cannot_learn_by_is_refused(
    parent: Path, run_directory: RunDirectory, values: dict[str, Any], pointer: str
) -> None:
    from workers.models import build

    with pytest.raises(RewardError) as caught:
        build(recipe_of(parent, **values))
    assert caught.value.pointer == pointer
