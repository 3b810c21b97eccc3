"""How much pictures are like a goal: the formula, the import, what is read of a trajectory, and the component."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.picture_files import BLUE, RED, coloured, data_url, file_of, noise, png_bomb
from tests.workers.dual_encoders import SIDE, save_dual_encoder
from workers.engine import Batcher, ServedModel, Version
from workers.engine.item_score import ItemScore
from workers.errors import InvalidRecord, RewardError
from workers.importing.importer import run
from workers.json_files import write_json
from workers.models import LoadedModel, load
from workers.models.backbones.goal_likeness import goal_likeness
from workers.models.cache.embeddings import ChunkCache
from workers.models.exporting import export
from workers.models.exporting.source import ExportOptions
from workers.schema import ObservationResult, Part, ScoreInput, Step, Task, Text, Trajectory
from workers.schema.endpoints import parse_spec
from workers.text.pictures import PICTURE_TOKENS

Json = dict[str, Any]
GOAL, BASELINE = "a cart with the pole upright", "a cart"


def imported(folder: Path, public: Path, **options: Any) -> LoadedModel:
    folder.mkdir()
    write_json(folder / "request.json", {"checkpoint": str(public), "options": options})
    run(folder)
    return load(folder / "model")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_dual_encoder(tmp_path_factory.mktemp("public") / "clip")


@pytest.fixture(scope="module")
def model(public: Path, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp("imported") / "run"
    return imported(folder, public, goal=GOAL, baseline=BASELINE, alpha=0.3)


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    batcher = Batcher()
    yield batcher
    batcher.close()


def page(image: Any) -> Part:
    return Part(type="image", source=data_url(file_of(image)), media_type="image/png")


def frames(*images: Any, first: Any = None) -> Trajectory:
    """An agent step for each, which has it as its observation; None for a step without. first: seen before."""
    begin = (page(first),) if first is not None else (Part(text="Keep the pole up."),)
    steps = [Step(source="user", message=begin)]
    for image in images:
        seen = () if image is None else (ObservationResult(content=(page(image),)),)
        steps.append(Step(source="agent", message=(Part(text="left"),), observation=seen))
    return Trajectory(steps=tuple(steps), task=Task(id="t"))


def cosine(public: Path, image: Any, text: str) -> float:
    """By transformers' own class, image processor and tokenizer, of a picture that is a square already."""
    clip: Any = transformers.CLIPModel.from_pretrained(public).eval()
    processor: Any = transformers.AutoImageProcessor.from_pretrained(public)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(public)
    with torch.no_grad():
        out = clip(**tokenizer([text], return_tensors="pt"), **processor(images=[image], return_tensors="pt"))
    return float((out.logits_per_image[0, 0] / clip.logit_scale.exp()).detach())


def square(seed: int) -> Any:
    return noise(seed, SIDE, SIDE)


def units(*shape: int, seed: int = 0) -> torch.Tensor:
    found = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    return torch.nn.functional.normalize(found, dim=-1)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), alpha=st.floats(0, 1), size=st.integers(2, 40))
def test_the_likeness_is_the_published_projection_and_bounded(seed: int, alpha: float, size: int) -> None:
    """As written in definition 1: with the matrix that projects on the line through baseline and goal."""
    pictures, (goal, baseline) = units(5, size, seed=seed), units(2, size, seed=seed + 1)
    found = goal_likeness(pictures, goal, baseline, alpha)
    direction = (goal - baseline).unsqueeze(1)
    on_line = baseline + (pictures - baseline) @ (direction @ direction.T / direction.square().sum())
    expected = 1 - (alpha * on_line + (1 - alpha) * pictures - goal).square().sum(1) / 2
    assert torch.allclose(found, expected, atol=1e-9)
    assert (found.abs() <= 1).all()
    assert torch.allclose(goal_likeness(pictures, goal, baseline, 0.0), pictures @ goal, atol=1e-9)
    assert torch.allclose(goal_likeness(pictures, goal, None, alpha), pictures @ goal, atol=1e-9)
    assert goal_likeness(goal.unsqueeze(0), goal, baseline, alpha).item() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_an_import_embeds_as_transformers_does(kind: str, tmp_path: Path) -> None:
    folder = save_dual_encoder(tmp_path / "public", kind)
    found = imported(tmp_path / "run", folder, goal="a red page", pictures="each")
    check = found.manifest["imported"]["check"]
    assert check["pictures"] == 3 and check["texts"] == 1 and check["largest_difference"] < 1e-5
    assert found.manifest["likeness"] == {
        "goal": "a red page",
        "baseline": "",
        "alpha": 0.0,
        "pictures": "each",
    }
    assert found.sees_pictures and found.aggregation == "mean"


def test_without_a_baseline_it_is_the_cosine_of_clip(public: Path, tmp_path: Path) -> None:
    found = imported(tmp_path / "run", public, goal=GOAL)
    images = [square(seed) for seed in range(3)]
    scores = found.score([found.render(frames(image)) for image in images])
    theirs = [cosine(public, image, GOAL) for image in images]
    assert [score.raw for score in scores] == pytest.approx(theirs, abs=1e-5)
    assert max(theirs) - min(theirs) > 1e-3


def test_a_step_is_worth_the_newest_picture(model: LoadedModel) -> None:
    a, b = square(1), square(2)
    (first,), (second,) = (model.score([model.render(frames(image))]) for image in (a, b))
    (score,) = model.score([model.render(frames(a, None, b, first=b))])
    assert score.values == pytest.approx((first.raw, first.raw, second.raw), abs=1e-6)
    assert score.offset == pytest.approx(second.raw, abs=1e-6) and score.raw == score.values[-1]
    assert sum(score.step_rewards) + score.offset == pytest.approx(score.raw, abs=1e-6)
    # What comes after the last agent step is its result.
    shown = Trajectory(steps=(*frames(a).steps, Step(source="user", message=(page(b),))), task=Task(id="t"))
    assert model.score([model.render(shown)])[0].raw == pytest.approx(second.raw, abs=1e-6)


def test_rewards_do_not_depend_on_the_batch_or_the_cache(model: LoadedModel) -> None:
    contents = [frames(*map(square, range(seed, seed + 3))) for seed in range(4)]
    cache, rendered = ChunkCache(10**6), [model.render(each) for each in contents]
    alone = [model.score([each])[0].raw for each in rendered]
    assert [score.raw for score in model.score(rendered, cache=cache)] == pytest.approx(alone, abs=1e-5)
    assert len(cache) == 6  # pictures, each by its content once
    encoder: Any = model.model.backbone.encoder
    encoder.model.get_image_features, kept = None, encoder.model.get_image_features
    try:
        assert [score.raw for score in model.score(rendered, cache=cache)] == pytest.approx(alone, abs=1e-5)
    finally:
        encoder.model.get_image_features = kept


def test_of_many_pictures_the_latest_are_read(public: Path, tmp_path: Path) -> None:
    found = imported(tmp_path / "run", public, goal=GOAL, pictures="each", max_tokens=3 * PICTURE_TOKENS)
    images = [square(seed) for seed in range(5)]
    (score,) = found.score([found.render(frames(*images))])
    latest = [found.score([found.render(frames(image))])[0].raw for image in images[2:]]
    assert score.truncated and score.dropped == (0, 1)
    assert score.raw == pytest.approx(np.mean(latest), abs=1e-6)


def test_what_has_no_picture_is_refused(model: LoadedModel) -> None:
    for content in (Text("done"), frames(None), frames(None, None)):
        with pytest.raises(RewardError, match=r"pictures only|has no picture"):
            model.render(content)
    named = Step(source="user", message=(Part(type="image", source="https://example.org/a.png"),))
    with pytest.raises(RewardError, match="has no picture"):
        model.render(Trajectory(steps=(named, *frames(None).steps), task=Task(id="t")))
    with pytest.raises(RewardError, match="no agent step"):
        model.render(Trajectory(steps=frames(None).steps[:1], task=Task(id="t")))
    hostile = Part(type="image", source=data_url(png_bomb(30_000, 30_000)))
    with pytest.raises(RewardError, match="step 1: a picture has 30000 x 30000"):
        model.render(Trajectory(steps=(Step(source="agent", message=(hostile,)),), task=Task(id="t")))


@pytest.mark.parametrize(
    ("options", "pointer", "words"),
    [
        ({}, "/options/goal", "needs a goal"),
        ({"goal": GOAL, "alpha": 0.5}, "/options/alpha", "set baseline"),
        ({"goal": GOAL, "baseline": GOAL}, "/options/baseline", "the same text"),
        ({"goal": GOAL, "pictures": "first"}, "/options/pictures", "last, each"),
        ({"goal": GOAL, "label": "good"}, "/options/label", "means nothing"),
        ({"goal": "cart " * 40}, None, "42 tokens, and this model reads 16"),
        ({"goal": "lorem", "baseline": "ipsum"}, "/baseline", "reads goal and baseline"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    public: Path, tmp_path: Path, options: Json, pointer: str | None, words: str
) -> None:
    with pytest.raises(RewardError, match=words) as caught:
        imported(tmp_path / "run", public, **options)
    assert pointer is None or caught.value.pointer == pointer


def test_folders_that_lack_something_are_refused(public: Path, tmp_path: Path) -> None:
    for missing, words in (
        ("preprocessor_config.json", "no preprocessor_config"),
        ("tokenizer.json", "no tokenizer.json"),
    ):
        folder = shutil.copytree(public, tmp_path / missing)
        (folder / missing).unlink()
        with pytest.raises(RewardError, match=words):
            imported(tmp_path / f"{missing}-run", folder, goal=GOAL)
    pickled = shutil.copytree(public, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(RewardError, match="can run code when it is read"):
        imported(tmp_path / "pickled-run", pickled, goal=GOAL)


def test_an_artifact_that_was_changed_is_not_loaded(model: LoadedModel, public: Path, tmp_path: Path) -> None:
    found = imported(tmp_path / "run", public, goal=GOAL)
    folder = tmp_path / "run" / "model"
    assert not [path for path in folder.iterdir() if path.suffix in (".bin", ".pt", ".pkl", ".py")]
    (folder / "likeness.safetensors").write_bytes(b"0" * 64)
    with pytest.raises(RewardError, match=r"damaged: likeness\.safetensors"):
        load(folder)
    manifest = json.loads((folder / "touchstone.json").read_text())
    assert manifest["template_fingerprint"] == found.manifest["template_fingerprint"]


@pytest.mark.slow
def test_a_package_of_it_scores_alike(public: Path, tmp_path: Path) -> None:
    """It is compared with the artifact, in a process without this package."""
    imported(tmp_path / "run", public, goal=GOAL, baseline=BASELINE)
    usage = export(tmp_path / "run" / "model", "standalone", tmp_path / "out", ExportOptions())
    assert "a reward within" in usage.checked
    with pytest.raises(RewardError, match="has no form 'transformers'"):
        export(tmp_path / "run" / "model", "transformers", tmp_path / "other", ExportOptions())


def component(**values: Any) -> Json:
    return {"name": "like", "type": "goal_likeness", "model": "p/m@1", **values}


def scored(batcher: Batcher, model: Any, spec: Json, *contents: Trajectory) -> list[ItemScore]:
    served = {"p/m@1": ServedModel("p/m@1", model, ChunkCache(10**6))}
    version = Version(1, parse_spec(spec | {"transforms": []}), served, batcher, lambda _: None)
    version.warm_up()
    return asyncio.run(version.score(version.render([ScoreInput(content=content) for content in contents])))


@pytest.mark.parametrize("pictures", ["last", "each"])
def test_steps_of_the_component_add_up_within_its_bound(
    model: LoadedModel, batcher: Batcher, pictures: str
) -> None:
    contents = [
        frames(square(1), None, square(2), first=square(3)),
        frames(None, square(4)),
        frames(coloured(RED), coloured(BLUE)),
    ]
    found = scored(batcher, model, {"components": [component(pictures=pictures)]}, *contents, contents[0])
    for score in found:
        assert -1 <= score.reward <= 1 and sum(score.steps) == pytest.approx(score.reward, abs=1e-6)
    assert found[1].steps[0] == 0
    alone = [
        scored(batcher, model, {"components": [component()]}, frames(square(seed)))[0].reward
        for seed in (1, 1, 2)
    ]
    whole = alone[-1] if pictures == "last" else float(np.mean(alone))
    assert found[0].reward == pytest.approx(whole, abs=1e-6) == found[3].reward


def test_a_component_asks_for_another_goal(model: LoadedModel, public: Path, batcher: Batcher) -> None:
    image, other = square(5), "a red page"
    parts = [
        component(name="own"),
        component(name="other", goal=other),
        component(name="line", goal=other, baseline="a page", alpha=1.0),
        {"name": "model", "type": "reward_model", "model": "p/m@1"},
    ]
    (score,) = scored(batcher, model, {"components": parts}, frames(image))
    own = model.score([model.render(frames(image))])[0].raw
    assert score.values["own"] == pytest.approx(own, abs=1e-6) == score.values["model"]
    assert score.values["other"] == pytest.approx(cosine(public, image, other), abs=1e-5)
    goal, baseline = (cosine(public, image, text) for text in (other, "a page"))
    encoder: Any = model.model.backbone.encoder
    between = float(torch.dot(*encoder.text_embeddings([other, "a page"])))
    # (s - g) on the line has the length (s.g - s.b - (1 - g.b)) / |g - b|, and |g - b|^2 = 2 - 2 g.b.
    along = (goal - baseline - (1 - between)) ** 2 / (2 - 2 * between)
    assert score.values["line"] == pytest.approx(1 - along / 2, abs=1e-4)
    assert "unread:image" not in score.flags


def test_pictures_after_the_last_agent_step_are_not_flagged(model: LoadedModel, batcher: Batcher) -> None:
    after = Step(source="user", message=(page(square(1)),))
    words = Step(source="user", message=(page(square(1)), Part(text="thanks")))
    contents = [
        Trajectory(steps=(*frames(square(2)).steps, step), task=Task(id="t")) for step in (after, words)
    ]
    seen, both = scored(batcher, model, {"components": [component()]}, *contents)
    assert "unread:after_last_agent_step" not in seen.flags
    assert "unread:after_last_agent_step" in both.flags


def test_specs_that_make_no_sense_are_refused() -> None:
    for values, pointer in (
        ({"baseline": "a cart"}, "baseline"),
        ({"goal": GOAL, "baseline": GOAL}, "baseline"),
        ({"goal": GOAL, "alpha": 0.5}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"pictures": "first"}, "pictures"),
    ):
        with pytest.raises(InvalidRecord) as caught:
            parse_spec({"components": [component(**values)]})
        assert caught.value.pointer == f"/components/0/{pointer}"
    unnamed = {key: value for key, value in component().items() if key != "model"}
    with pytest.raises(InvalidRecord, match="model"):
        parse_spec({"components": [unnamed]})
    here = {"name": "main", "type": "reward_model", "model": "p/m@1", "server": "vllm"}
    with pytest.raises(InvalidRecord, match="scores no pictures"):
        parse_spec({"components": [here, component()]})


def test_a_model_of_another_kind_is_refused(batcher: Batcher) -> None:
    from tests.workers.engine.fakes import FakeModel

    with pytest.raises(RewardError, match="compares no pictures with a text"):
        scored(batcher, FakeModel(), {"components": [component()]}, frames(square(1)))
