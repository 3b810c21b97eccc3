"""A model saved and loaded scores the same; a folder that is not whole, or not its own, is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from workers.errors import RewardError
from workers.models import ChunkCache, Lineage, LoadedModel, build, load, save
from workers.schema import Features, Text, TokenIds


def store(model, folder: Path, recipe, **fields) -> None:
    values = {"reward": {"median": 0.0, "std": 1.0}, "criteria": {}}
    lineage = Lineage(snapshot={"name": "p/d@1", "hash": "h"}, code_version="1")
    save(model, folder, recipe=recipe, lineage=lineage, **(values | fields))


@pytest.fixture(params=[False, True], ids=["frozen", "unfrozen"])
def artifact(request, tmp_path, tiny_recipe) -> Path:
    recipe = replace(tiny_recipe, unfrozen=request.param)
    torch.manual_seed(3)
    store(build(recipe), tmp_path / "model", recipe, reward={"median": 0.25, "std": 2.0})
    return tmp_path / "model"


@pytest.fixture
def model(artifact) -> LoadedModel:
    return load(artifact)


def edit(folder: Path, **values) -> None:
    path = folder / "touchstone.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def raw(model: LoadedModel, *contents) -> list[float]:
    return [score.raw for score in model.score([model.render(content) for content in contents])]


def test_saved_and_loaded_it_scores_as_before(tmp_path, tiny_recipe, make_trajectory) -> None:
    contents = [make_trajectory("good sent"), make_trajectory("bad lost refund " * 9)]
    for unfrozen in (False, True):
        recipe = replace(tiny_recipe, unfrozen=unfrozen)
        torch.manual_seed(5)
        built = build(recipe)
        folder = tmp_path / f"model-{unfrozen}"
        store(built, folder, recipe)
        before = LoadedModel(built, load(folder).manifest)
        assert raw(load(folder), *contents) == pytest.approx(raw(before, *contents), abs=1e-6)


def test_what_it_says_of_itself(model) -> None:
    assert (model.median, model.std, model.aggregation) == (0.25, 2.0, "value")
    assert model.manifest["snapshot"] == {"name": "p/d@1", "hash": "h"}
    assert model.manifest["template_rewrites"] is False


def test_nothing_in_the_folder_can_be_run(artifact) -> None:
    assert {path.suffix for path in artifact.iterdir()} <= {".json", ".safetensors"}


def test_step_rewards_sum_to_what_was_gained(model, make_trajectory) -> None:
    (one,) = model.score([model.render(make_trajectory("good sent lost " * 20))])
    assert sum(one.step_rewards) == pytest.approx(one.raw - one.offset, abs=1e-6)


def test_a_cache_alters_nothing_and_says_what_it_saved(model, make_trajectory) -> None:
    contents = [model.render(make_trajectory(text)) for text in ("good sent", "bad", "good sent")]
    cache = ChunkCache(10**6)
    first = model.score(contents, cache=cache)
    again = model.score(contents, cache=cache)
    assert [record.raw for record in again] == pytest.approx([record.raw for record in first], abs=1e-6)
    assert [record.cached_tokens for record in again] == [record.tokens for record in again]
    assert first[0].raw == pytest.approx(first[2].raw, abs=1e-12)  # another place in the batch


def test_the_item_alone_or_in_a_batch(model, make_trajectory) -> None:
    contents = [make_trajectory("good " * count) for count in (1, 30, 3, 90)]
    alone = [value for content in contents for value in raw(model, content)]
    assert raw(model, *contents) == pytest.approx(alone, abs=1e-5)
    assert raw(model, *contents[::-1]) == pytest.approx(alone[::-1], abs=1e-5)


def test_text_and_its_tokens_are_the_same(model) -> None:
    (chunk,) = model.render(Text("good order")).chunks
    assert raw(model, Text("good order"), TokenIds(chunk.ids))[0] == pytest.approx(
        raw(model, TokenIds(chunk.ids))[0], abs=1e-6
    )


def test_numbers_are_nothing_for_a_model_of_text(model) -> None:
    with pytest.raises(RewardError, match="this model reads text"):
        model.render(Features(((1.0,),)))


def test_another_schema_version(artifact) -> None:
    edit(artifact, schema_version=99)
    with pytest.raises(RewardError, match="schema version 99"):
        load(artifact)


def test_another_rendering(artifact) -> None:
    edit(artifact, template_fingerprint="0" * 64)
    with pytest.raises(RewardError, match="another rendering"):
        load(artifact)


def test_another_encoder(artifact) -> None:
    edit(artifact, files={})
    weights = load_file(artifact / "model.safetensors")
    name = next(iter(weights))
    weights[name] = weights[name] + 1
    save_file(weights, artifact / "model.safetensors")
    with pytest.raises(RewardError, match="it was trained on"):
        load(artifact)


def test_a_flipped_bit(artifact) -> None:
    path = artifact / "mixer.safetensors"
    saved = bytearray(path.read_bytes())
    saved[-3] ^= 1
    path.write_bytes(saved)
    with pytest.raises(RewardError, match=r"is damaged: mixer\.safetensors is not the file that was saved"):
        load(artifact)


def test_a_mixer_of_another_shape(artifact) -> None:
    edit(artifact, files={})
    weights = load_file(artifact / "mixer.safetensors")
    weights.pop("position_scale")
    save_file(weights, artifact / "mixer.safetensors")
    with pytest.raises(RewardError, match=r"(?s)is damaged.*position_scale"):
        load(artifact)


@pytest.mark.parametrize("name", ["mixer.safetensors", "tokenizer.json"])
def test_a_file_cut_short_or_gone(artifact, name) -> None:
    path = artifact / name
    path.write_bytes(path.read_bytes()[:40])
    said = "is damaged|cannot be read"
    with pytest.raises(RewardError, match=said):
        load(artifact)
    path.unlink()
    with pytest.raises(RewardError, match=said):
        load(artifact)


@pytest.mark.parametrize(("text", "said"), [("{", "not valid JSON"), ("[]", "expected a JSON object")])
def test_a_manifest_that_is_none(artifact, text, said) -> None:
    (artifact / "touchstone.json").write_text(text)
    with pytest.raises(RewardError, match=rf"touchstone\.json of model: .*{said}"):
        load(artifact)


def test_a_folder_that_is_no_model(tmp_path) -> None:
    with pytest.raises(RewardError, match=r"it has no touchstone\.json"):
        load(tmp_path)


def test_an_encoder_named_by_a_path_is_not_followed(artifact) -> None:
    """A manifest comes from whoever made the model; it names nothing outside its folder."""
    backbone = json.loads((artifact / "touchstone.json").read_text())["backbone"]
    (artifact / "model.safetensors").unlink()
    edit(artifact, backbone=backbone | {"encoder": "/etc"})
    with pytest.raises(RewardError, match=r"is damaged.*model\.safetensors"):
        load(artifact)


def test_an_artifact_from_before_lengths_were_scaled_scores_as_it_did(
    tmp_path, tiny_recipe, make_trajectory
) -> None:
    torch.manual_seed(5)
    built = build(tiny_recipe)
    assert built.backbone.mixer.config.ground_scale == 8
    store(built, tmp_path / "now", tiny_recipe)
    store(built, tmp_path / "before", tiny_recipe)
    path = tmp_path / "before" / "touchstone.json"
    mixer = json.loads(path.read_text())["mixer"]
    del mixer["ground_scale"]
    edit(tmp_path / "before", mixer=mixer)
    now, before = (load(tmp_path / name) for name in ("now", "before"))
    assert before.model.backbone.mixer.config.ground_scale == 1
    content = make_trajectory("good sent lost")
    assert raw(now, content) != pytest.approx(raw(before, content), abs=1e-3)
