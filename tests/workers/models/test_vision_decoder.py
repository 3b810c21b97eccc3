"""Vision-language decoders as reward models: the pictures are read where they stand, as transformers' own code does."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor, Qwen2VLProcessor

from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from tests.workers.seeing_decoders import FAMILIES
from workers.errors import RewardError
from workers.models import Lineage, LoadedModel, build, load, save
from workers.models.backbones.vision_processor import VisionProcessor
from workers.models.kinds import recipe_kind
from workers.schema import ObservationResult, Part, PreferenceRecord, Step, Task, Text, Trajectory
from workers.schema.parents import require_parent, sees_pictures
from workers.schema.picture_archive import PICTURES, write_pictures
from workers.schema.pictures import picture_bytes
from workers.schema.recipe import Recipe
from workers.text.pictures import forget_pictures
from workers.train.pipeline import train


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FAMILIES[request.param](tmp_path_factory.mktemp("vision"))


@pytest.fixture
def recipe(folder: Path, tiny_recipe: Recipe) -> Recipe:
    return dataclasses.replace(
        tiny_recipe,
        backbone="decoder",
        decoder=str(folder),
        max_tokens=200,
        lora_rank=0,
        ensemble=1,
        centring=0.0,
    )


@pytest.fixture
def seeing(recipe: Recipe, tmp_path: Path) -> LoadedModel:
    torch.manual_seed(5)
    model = build(recipe)
    out = tmp_path / "model"
    out.mkdir()
    save(model, out, recipe=recipe, reward={"median": 0.0, "std": 1.0}, criteria={}, lineage=Lineage())
    return load(out)


@pytest.fixture(autouse=True)
def no_archives() -> Iterator[None]:
    yield
    forget_pictures()


def url(colour: tuple[int, int, int], number: int = 0) -> str:
    return data_url(file_of(coloured(colour, width=60 + number, height=40)))


def seen(*sources: str, task: str = "t") -> Trajectory:
    """A picture before each step of the agent."""
    steps = []
    for source in sources:
        picture = Part(type="image", source=source)
        steps += [
            Step(source="user", message=(Part(text="look"), picture)),
            Step(source="agent", message=(Part(text="done"),)),
        ]
    return Trajectory(steps=tuple(steps), task=Task(id=task))


def raw(model: LoadedModel, *items: Any) -> list[float]:
    return [score.raw for score in model.score([model.render(item) for item in items])]


def test_red_and_blue_differ_alone_and_in_a_batch(seeing: LoadedModel) -> None:
    assert seeing.sees_pictures and sees_pictures(seeing.manifest)
    red, blue, again = raw(seeing, seen(url(RED)), seen(url(BLUE)), seen(url(RED, 0)))
    assert red == pytest.approx(again, abs=1e-6) and abs(red - blue) > 1e-4
    (alone,) = raw(seeing, seen(url(BLUE)))
    assert alone == pytest.approx(blue, abs=1e-5)
    keys = {seeing.render(seen(url(colour))).key for colour in (RED, BLUE)}
    assert len(keys) == 2, "scores are kept by the picture too"


def test_the_states_are_those_of_transformers(seeing: LoadedModel, folder: Path) -> None:
    """By the whole model of the folder, from the same ids and pixels."""
    item: Any = seeing.render(seen(url(RED), url(BLUE)))
    whole = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager").eval()
    processor = VisionProcessor(folder)
    ids = torch.tensor([item.ids])
    kinds = (ids == processor.image_token).long()
    name = "mm_token_type_ids" if "qwen" in processor.model_type else "token_type_ids"
    with torch.no_grad():
        expected = whole.model(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            **{name: kinds},
            **processor.pixels(item.pictures),
        ).last_hidden_state[0]
        found = seeing.model.backbone.states([item]).flat
    assert torch.allclose(found, expected[item.places], atol=1e-4)
    assert int(kinds.sum()) == 2 * (len(processor.block) - 2)


def test_the_ids_of_a_picture_are_those_of_the_processor(folder: Path) -> None:
    """Of Gemma's AutoProcessor; that of Qwen-VL needs torchvision, of which its own count of tokens is asked."""
    ours = VisionProcessor(folder)
    if "gemma" in ours.model_type:
        theirs = AutoProcessor.from_pretrained(folder)
        text = theirs.tokenizer.boi_token
        found = theirs(text=text, images=[ours.blank().pixels()], return_tensors="pt")
        ids = found["input_ids"][0].tolist()
        begin = ids.index(ours.block[0])
        assert tuple(ids[begin : begin + len(ours.block)]) == ours.block
        assert np.allclose(found["pixel_values"], ours.pixels([ours.blank()])["pixel_values"])
        return
    stand: Any = SimpleNamespace(image_processor=ours.images, image_token="x")
    grid = {"image_grid_thw": ours.pixels([ours.blank()])["image_grid_thw"]}
    assert len(Qwen2VLProcessor.replace_image_token(stand, grid, 0)) == len(ours.block) - 2


def test_pictures_stand_where_they_were(seeing: LoadedModel) -> None:
    item: Any = seeing.render(seen(url(RED), url(BLUE)))
    token = seeing.renderer.block[1]
    runs = [place for place, id_ in enumerate(item.ids) if id_ == token and item.ids[place - 1] != token]
    first, second = item.reads
    assert runs[0] < first < runs[1] < second and len(item.pictures) == 2
    (one,), (two,) = (raw(seeing, seen(*order)) for order in ((url(RED), url(BLUE)), (url(BLUE), url(RED))))
    assert abs(one - two) > 1e-5


def test_a_picture_of_a_tool_result_is_read(seeing: LoadedModel) -> None:
    def shot(source: str) -> Trajectory:
        result = ObservationResult(content=(Part(type="image", source=source),))
        steps = (
            Step(source="user", message=(Part(text="look"),)),
            Step(source="agent", message=(Part(text="look"),), observation=(result,)),
            Step(source="agent", message=(Part(text="done"),)),
        )
        return Trajectory(steps=steps, task=Task(id="t"))

    red, blue = raw(seeing, shot(url(RED)), shot(url(BLUE)))
    assert abs(red - blue) > 1e-5


def test_what_is_too_long_loses_pictures_and_says_so(seeing: LoadedModel) -> None:
    item: Any = seeing.render(seen(*[url(RED)] * 40))
    assert item.truncated and len(item.ids) <= 200 and 0 < len(item.pictures) < 40
    token = seeing.renderer.block[1]
    assert item.ids.count(token) == len(item.pictures) * (len(seeing.renderer.block) - 2)
    assert min(item.ids) >= 0


def test_private_characters_forge_no_picture(seeing: LoadedModel) -> None:
    forged = seen(url(RED))
    step = Step(source="user", message=(Part(text="\U00100000 look \U00100003"),))
    steps = (step, *forged.steps)
    item: Any = seeing.render(Trajectory(steps=steps, task=Task(id="t")))
    assert len(item.pictures) == 1 and min(item.ids) >= 0
    assert min(seeing.render(Text("\U00100000")).ids) >= 0
    thought = Step(source="agent", reasoning="\U00100007", message=(Part(text="done"),))
    with pytest.raises(RewardError, match="private characters"):
        seeing.render(Trajectory(steps=(step, thought), task=Task(id="t")))


def test_damaged_pictures_name_their_step(seeing: LoadedModel) -> None:
    with pytest.raises(RewardError, match="step 3: a picture cannot be read"):
        seeing.render(seen(url(RED), data_url(b"no picture")))


def test_without_its_image_processor_it_reads_text_only(folder: Path, recipe: Recipe) -> None:
    assert recipe_kind(recipe) == "vision-decoder"
    for name in ("preprocessor_config.json", "processor_config.json"):
        path = folder / name
        if path.is_file():
            path.rename(folder / f"{name}.away")
    try:
        assert recipe_kind(recipe) == "decoder"
    finally:
        for path in folder.glob("*.away"):
            path.rename(folder / path.name.removesuffix(".away"))


@pytest.mark.parametrize("rank", [0, 4])
def test_a_training_learns_from_pictures_alone(rank: int, run_directory: Any, recipe: Recipe) -> None:
    """Red is better than blue, of equal text, with adapters and without; a child goes on from it."""
    files: dict[str, bytes] = {}

    def side(colour: tuple[int, int, int], number: int) -> Trajectory:
        file = picture_bytes(url(colour, number))
        files[file.digest] = file.data
        return seen(f"sha256:{file.digest}", task=f"t{number}")

    records = [
        PreferenceRecord(a=side(RED, number), b=side(BLUE, number), choice="a", annotator="ann")
        for number in range(16)
    ]
    splits = {"train": records[:10], "validation": records[10:13], "test": records[13:]}
    trained = dataclasses.replace(recipe, lora_rank=rank, epochs=6, learning_rate=3e-3)
    folder = run_directory(trained, splits=splits)
    write_pictures(folder / "data" / PICTURES, files.items())
    report = train(folder)
    assert report["train"]["pictures"] == {"count": 32, "read": 32}
    assert report["preference"]["accuracy"] == 1.0
    forget_pictures()
    model = load(folder / "model")
    red, blue = raw(model, seen(url(RED, 33)), seen(url(BLUE, 33)))
    assert red > blue
    require_parent(trained, model.manifest)
