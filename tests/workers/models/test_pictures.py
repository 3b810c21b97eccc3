"""Models that see: pictures are read by the step-encoder, from files of every kind, and by towers of transformers."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from tests.picture_files import BLUE, RED, coloured, data_url, file_of, noise, png_bomb
from workers.errors import RewardError
from workers.models import Lineage, LoadedModel, build, load, save
from workers.models.backbones.picture_statistics import CELLS, SIZE, picture_statistics
from workers.models.cache.embeddings import ChunkCache
from workers.schema import ObservationResult, Part, PreferenceRecord, Step, Task, ToolCall, Trajectory
from workers.schema.parents import require_parent
from workers.schema.picture_archive import PICTURES, write_pictures
from workers.schema.pictures import fitted, picture_bytes
from workers.schema.recipe import Recipe
from workers.schema.recipe_keys import parse_new_recipe
from workers.text import template_fingerprint
from workers.text.pictures import PICTURE_TOKENS, forget_pictures, use_pictures
from workers.train.pipeline import train

_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
_TALL = {**_VISION, "intermediate_size": 64}
_TEXT = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}


def _clip() -> Any:
    text = _TEXT | {"vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config=_TALL, projection_dim=8)
    )


TOWERS: dict[str, Callable[[], Any]] = {
    "clip vision": lambda: transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**_TALL)),
    "clip": _clip,
    "siglip": lambda: transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**_TALL)),
    "dinov2": lambda: transformers.Dinov2Model(transformers.Dinov2Config(**_VISION)),
    "dinov2 with registers": lambda: transformers.Dinov2WithRegistersModel(
        transformers.Dinov2WithRegistersConfig(**_VISION)
    ),
    "resnet": lambda: transformers.ResNetModel(
        transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    ),
}


@pytest.fixture(autouse=True)
def no_pictures_of_others() -> Iterator[None]:
    yield
    forget_pictures()


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, make in TOWERS.items():
        torch.manual_seed(5)
        folder = found[name] = tmp_path_factory.mktemp("tower") / name.replace(" ", "-")
        make().save_pretrained(folder)
        described = {
            "size": {"height": 32, "width": 32},
            "image_mean": [0.4, 0.5, 0.6],
            "image_std": [0.2, 0.3, 0.25],
        }
        (folder / "preprocessor_config.json").write_text(json.dumps(described))
    return found


def seen(
    picture: str | None, *, answer: str = "Done.", seen_by: str = "agent", task: str = "t"
) -> Trajectory:
    """A trajectory whose agent, tool or user shows a picture."""
    parts = (Part(type="image", source=picture),) if picture else ()
    user = Step(source="user", message=(Part(text="Make it."), *(parts if seen_by == "user" else ())))
    agent = Step(
        source="agent",
        message=(Part(text=answer), *(parts if seen_by == "agent" else ())),
        tool_calls=(ToolCall(name="look", arguments={}, id="c"),) if seen_by == "tool" else (),
        observation=(ObservationResult(content=parts, call_id="c"),) if seen_by == "tool" else (),
    )
    return Trajectory(steps=(user, agent), task=Task(id=task))


def url(image: Image.Image, format: str = "PNG", **options: Any) -> str:
    return data_url(file_of(image, format, **options), f"image/{format.lower()}")


def saved(recipe: Recipe, folder: Path) -> Path:
    torch.manual_seed(3)
    model = build(recipe)
    model.backbone.prepare([model.backbone.renderer.render(seen(url(noise(seed)))) for seed in range(4)])
    reward = {"median": 0.0, "std": 1.0}
    folder.mkdir()
    save(model, folder, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return folder


def raw(model: LoadedModel, *contents: Trajectory, cache: Any = None) -> list[float]:
    return [score.raw for score in model.score([model.render(each) for each in contents], cache=cache)]


@pytest.fixture
def seeing(tiny_recipe: Recipe, tmp_path: Path) -> LoadedModel:
    return load(saved(dataclasses.replace(tiny_recipe, image_encoder="embedded"), tmp_path / "model"))


@pytest.mark.parametrize("seen_by", ["agent", "tool", "user"])
def test_equal_text_and_another_picture_is_another_reward(seeing: LoadedModel, seen_by: str) -> None:
    contents = [seen(url(coloured(colour)), seen_by=seen_by) for colour in (RED, BLUE, RED)]
    red, blue, again = raw(seeing, *contents)
    assert red == pytest.approx(again, abs=1e-9)
    assert abs(red - blue) > 1e-4
    keys = [seeing.render(each).key for each in contents]
    assert keys[0] == keys[2] != keys[1]


def test_the_file_does_not_matter_only_the_pixels(seeing: LoadedModel) -> None:
    rewards = raw(
        seeing,
        seen(url(coloured(RED))),
        seen(url(coloured(RED), "WEBP", lossless=True)),
        seen(data_url(file_of(coloured(RED)), "image/gif")),
    )
    assert rewards == pytest.approx([rewards[0]] * 3, abs=1e-6)


def test_the_same_from_an_archive_with_a_cache_and_in_any_batch(seeing: LoadedModel, tmp_path: Path) -> None:
    files = [picture_bytes(url(noise(seed, 900, 500))) for seed in range(5)]
    write_pictures(tmp_path / PICTURES, ((file.digest, file.data) for file in files))
    use_pictures(tmp_path)
    named = [seen(f"sha256:{file.digest}") for file in files]
    sent = [seen(data_url(file.data)) for file in files]
    cache = ChunkCache(2**24)
    expected = [raw(seeing, each)[0] for each in sent]
    assert raw(seeing, *named) == pytest.approx(expected, abs=1e-5)
    assert raw(seeing, *sent, cache=cache) == pytest.approx(expected, abs=1e-5)
    assert raw(seeing, *named[::-1], cache=cache) == pytest.approx(expected[::-1], abs=1e-5)
    forget_pictures()
    assert raw(seeing, named[0]) == pytest.approx(raw(seeing, seen("sha256:" + "0" * 64)))


def test_an_address_is_not_fetched(seeing: LoadedModel) -> None:
    rewards = raw(seeing, seen("https://example.org/a.png"), seen("https://example.org/b.png"))
    assert rewards[0] == pytest.approx(rewards[1], abs=1e-9)
    assert all(chunk.picture is None for chunk in seeing.render(seen("https://example.org/a.png")).chunks)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("data:image/png;base64,aGVsbG8=", "step 2: a picture cannot be read"),
        (data_url(png_bomb(30_000, 30_000)), "step 2: a picture has 30000 x 30000 pixels"),
        (data_url(png_bomb(30, 30)), "step 2: a picture is damaged"),
        (data_url(file_of(noise(1), "JPEG")[:1500], "image/jpeg"), "step 2: a picture is damaged"),
    ],
)
def test_hostile_pictures_are_refused_in_words(seeing: LoadedModel, source: str, told: str) -> None:
    with pytest.raises(RewardError, match=told):
        seeing.render(seen(source))


def test_pictures_together_are_bounded(seeing: LoadedModel) -> None:
    large = data_url(file_of(Image.new("L", (7000, 7000)), compress_level=1))
    steps = seen(large).steps
    with pytest.raises(RewardError, match="more than 200 million pixels together"):
        seeing.render(Trajectory(steps=steps * 5, task=Task(id="t")))


def test_many_pictures_are_cut_from_the_middle_as_text_is(seeing: LoadedModel) -> None:
    steps = tuple(step for seed in range(9) for step in seen(url(noise(seed))).steps)
    rendered = seeing.render(Trajectory(steps=steps, task=Task(id="t")))
    pictures = [chunk for chunk in rendered.chunks if chunk.picture is not None]
    assert rendered.truncated
    assert 0 < len(pictures) <= 256 // PICTURE_TOKENS
    assert pictures[-1].step == len(steps) - 1
    assert rendered.tokens <= 256


def test_what_comes_later_changes_no_value_before_it(seeing: LoadedModel) -> None:
    first = seen(url(coloured(RED)))
    longer = Trajectory(steps=(*first.steps, *seen(url(coloured(BLUE))).steps), task=first.task)
    (short,), (long,) = (seeing.score([seeing.render(each)]) for each in (first, longer))
    assert long.values[0] == pytest.approx(short.values[0], abs=1e-5)


def test_models_of_text_are_as_before(tiny_recipe: Recipe, tmp_path: Path) -> None:
    """The same fingerprint as without the key, the same files, and pictures are markers."""
    folder = saved(tiny_recipe, tmp_path / "text")
    manifest = json.loads((folder / "touchstone.json").read_text())
    assert "image_encoder" not in manifest["backbone"]
    assert not any(path.name.startswith("image") for path in folder.iterdir())
    model = load(folder)
    assert not model.sees_pictures
    assert raw(model, seen(url(coloured(RED)))) == raw(model, seen(url(coloured(BLUE))))
    without = dict(manifest, mixer={k: v for k, v in manifest["mixer"].items() if k != "picture_size"})
    (folder / "touchstone.json").write_text(json.dumps(without))  # as an earlier version wrote it
    assert raw(load(folder), seen(None)) == raw(model, seen(None))
    assert template_fingerprint(model.renderer) == manifest["template_fingerprint"]


@pytest.mark.parametrize("name", TOWERS)
def test_towers_are_read_saved_and_loaded(
    name: str, towers: dict[str, Path], tiny_recipe: Recipe, tmp_path: Path
) -> None:
    recipe = dataclasses.replace(tiny_recipe, image_encoder=str(towers[name]))
    folder = saved(recipe, tmp_path / "model")
    model = load(folder)
    assert model.sees_pictures
    contents = [seen(url(noise(seed, 100, 70))) for seed in range(3)]
    rewards = raw(model, *contents)
    assert len({round(each, 4) for each in rewards}) == 3
    tower: Any = model.model.backbone.picture_encoder
    picture = model.render(contents[0]).chunks[-1].picture
    # By the class itself, with the numbers of its own preprocessing.
    pixels = torch.from_numpy(np.array(picture.pixels())).permute(2, 0, 1)[None] / 255.0
    pixels = (pixels - torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1)) / torch.tensor([0.2, 0.3, 0.25]).view(
        1, 3, 1, 1
    )
    whole = transformers.AutoModel.from_pretrained(towers[name], dtype=torch.float32).eval()
    theirs = getattr(whole, "vision_model", whole) if name == "clip" else whole
    with torch.no_grad():
        states = theirs(pixel_values=pixels).last_hidden_state
        ours = tower.encode([picture])[0]
    patches = states[0].flatten(1).T if states.dim() == 4 else states[0, -16:]
    if len(patches) == 16:  # of 4 x 4: the first cell of three is the mean of the first two by two
        corner = patches.view(4, 4, -1)[:2, :2].mean((0, 1))
        assert torch.allclose(ours[1], corner, atol=1e-5)
    assert ours.shape == (CELLS, states.shape[1] if states.dim() == 4 else states.shape[-1])
    manifest = json.loads((folder / "touchstone.json").read_text())
    assert manifest["backbone"]["image_encoder"] == "own"
    again = load(
        saved(dataclasses.replace(recipe, image_encoder=str(folder)), tmp_path / "again")
    )  # as of a parent
    inherited: Any = again.model.backbone.picture_encoder
    assert torch.allclose(inherited.encode([picture])[0], ours, atol=1e-5)
    assert inherited.name == tower.name


def test_folders_that_are_no_image_encoder_are_refused(
    tiny_recipe: Recipe, tiny_encoder: Path, towers: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(RewardError, match="reads no pictures"):
        build(dataclasses.replace(tiny_recipe, image_encoder=str(tiny_encoder)))
    with pytest.raises(RewardError, match=r"has no config\.json"):
        build(dataclasses.replace(tiny_recipe, image_encoder=str(tmp_path)))
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_bytes((towers["dinov2"] / "config.json").read_bytes())
    torch.save(
        transformers.AutoModel.from_pretrained(towers["dinov2"]).state_dict(), pickled / "pytorch_model.bin"
    )
    with pytest.raises(RewardError, match="safetensors"):
        build(dataclasses.replace(tiny_recipe, image_encoder=str(pickled)))


def test_a_key_that_nothing_reads_is_refused() -> None:
    with pytest.raises(RewardError, match="image_encoder = 'embedded' has no effect"):
        parse_new_recipe({"backbone": "linear", "image_encoder": "embedded"})


def test_a_parent_sees_as_its_child_does(seeing: LoadedModel, tiny_recipe: Recipe) -> None:
    require_parent(dataclasses.replace(tiny_recipe, image_encoder="embedded"), seeing.manifest)
    with pytest.raises(RewardError, match="the parent sees pictures"):
        require_parent(tiny_recipe, seeing.manifest)


def test_another_version_of_the_statistics_is_not_loaded(tiny_recipe: Recipe, tmp_path: Path) -> None:
    folder = saved(dataclasses.replace(tiny_recipe, image_encoder="embedded"), tmp_path / "model")
    manifest = json.loads((folder / "touchstone.json").read_text())
    manifest["backbone"]["image_encoder"] = "embedded-0"
    (folder / "touchstone.json").write_text(json.dumps(manifest))
    with pytest.raises(RewardError, match="trained on the image encoder 'embedded-0'"):
        load(folder)


def test_the_statistics_of_pictures_are_finite_and_fixed() -> None:
    """Models were trained on these numbers: where they change, STATISTICS_VERSION has to."""
    pictures = [
        coloured(RED),
        noise(1),
        Image.new("RGB", (5, 900)),
        Image.new("RGB", (1, 1), (255, 255, 255)),
    ]
    found = [picture_statistics(fitted(np.asarray(each), 256)) for each in pictures]
    assert all(each.shape == (CELLS, SIZE) and np.isfinite(each).all() for each in found)
    assert [round(float(each.sum()), 2) for each in found] == EXPECTED


EXPECTED = [94.16, 136.01, 10.0, 70.0]


def test_a_training_learns_from_pictures_alone(run_directory: Any, tiny_recipe: Recipe) -> None:
    """Red is better than blue, of equal text; the artifact needs no pictures, and a child goes on from it."""
    files: dict[str, bytes] = {}

    def side(colour: tuple[int, int, int], number: int) -> Trajectory:
        file = picture_bytes(url(coloured(colour, width=60 + number, height=40 + 2 * number)))
        files[file.digest] = file.data
        return seen(f"sha256:{file.digest}", task=f"t{number}")

    records = [
        PreferenceRecord(a=side(RED, number), b=side(BLUE, number), choice="a", annotator="ann")
        for number in range(24)
    ]
    splits = {"train": records[:16], "validation": records[16:20], "test": records[20:]}
    recipe = dataclasses.replace(tiny_recipe, image_encoder="embedded", epochs=12)
    folder = run_directory(recipe, splits=splits)
    write_pictures(folder / "data" / PICTURES, files.items())
    report = train(folder)
    assert report["train"]["pictures"] == {"count": 48, "read": 48}
    assert report["preference"]["accuracy"] == 1.0
    forget_pictures()
    model = load(folder / "model")
    red, blue = raw(model, *(seen(url(coloured(colour, width=99, height=33))) for colour in (RED, BLUE)))
    assert red > blue
    with pytest.raises(RewardError, match="usable feedback"):
        train(run_directory(tiny_recipe, splits=splits))
