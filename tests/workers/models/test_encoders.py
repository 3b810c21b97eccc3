"""Encoders of sentence-transformers and BERT-type checkpoints: embeddings are those of the library that wrote them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from tests.workers.models.encoder_folders import LAYERS, MAKERS, TEXTS
from workers.errors import RewardError
from workers.models import ChunkCache, Lineage, LoadedModel, build, load, save
from workers.models.backbones.encoder import encode
from workers.models.kinds.encoder_files import encoder_renderer, pretrained_parts
from workers.schema.encoder_folder import read_encoder_folder
from workers.schema.recipe import Recipe
from workers.train.optimiser import make_optimiser
from workers.train.pipeline import train

pytestmark = pytest.mark.ml
RECIPE = Recipe(chunk_tokens=14, max_tokens=256, width=16, attention_heads=2, ensemble=2)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MAKERS.items()}


@pytest.fixture(scope="module", params=MAKERS)
def folder(request: Any, folders: dict[str, Path]) -> Path:
    return folders[request.param]


def embedded(recipe: Recipe, texts: list[str], *, unit: bool = False) -> np.ndarray:
    """[texts, size] of our own, of whole texts in one chunk each."""
    described = read_encoder_folder(Path(recipe.encoder))
    reads = encoder_renderer(recipe, max_tokens=256, names_speakers=False)
    parts = pretrained_parts(recipe, reads, None)
    longest = (described.longest or 10**6) - reads.frame
    chunks = [reads.framed(reads.token_ids(text)[:longest]) for text in texts]
    with torch.no_grad():
        if unit:
            return encode(parts.encoder, chunks, pooling=parts.pooling).numpy()
        rows = [
            parts.pooling(
                parts.encoder(input_ids=ids, attention_mask=torch.ones_like(ids))[0], torch.ones_like(ids)
            )
            for ids in (torch.tensor([chunk]) for chunk in chunks)
        ]
    return torch.cat(rows).numpy()


def test_embeddings_are_those_of_sentence_transformers(folder: Path) -> None:
    """One by one, and in a padded batch; of unit length there, as everything that reads them compares by the cosine."""
    theirs = SentenceTransformer(str(folder), device="cpu")
    recipe = replace(RECIPE, encoder=str(folder))
    expected = theirs.encode(TEXTS)
    np.testing.assert_allclose(embedded(recipe, TEXTS), expected, atol=1e-5)
    assert np.abs(expected[0] - expected[1]).max() > 1e-2, "texts that cannot be distinguished show nothing"
    unit = theirs.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(embedded(recipe, TEXTS, unit=True), unit, atol=1e-5)
    assert read_encoder_folder(folder).embedding_size == expected.shape[1]


@pytest.mark.parametrize(
    ("name", "prompt", "options"),
    [
        ("modernbert", "document", {"prompt_name": "document"}),
        ("modernbert", "search: ", {"prompt": "search: "}),
        ("roberta", "passage: ", {"prompt": "passage: "}),
        ("deberta", "query: ", {"prompt": "query: "}),
        ("bert", "query: ", {"prompt": "query: "}),
    ],
)
def test_prompts(folders: dict[str, Path], name: str, prompt: str, options: dict[str, str]) -> None:
    recipe = replace(RECIPE, encoder=str(folders[name]), encoder_prompt=prompt)
    expected = SentenceTransformer(str(folders[name]), device="cpu").encode(TEXTS, **options)
    np.testing.assert_allclose(embedded(recipe, TEXTS), expected, atol=1e-5)


def test_a_plain_checkpoint_is_pooled_by_the_mean(folder: Path) -> None:
    raw = folder.parent / "raw"
    recipe = replace(RECIPE, encoder=str(raw))
    expected = SentenceTransformer(str(raw), device="cpu").encode(TEXTS[:3], normalize_embeddings=True)
    np.testing.assert_allclose(embedded(recipe, TEXTS[:3], unit=True), expected, atol=1e-5)


@pytest.mark.parametrize("unfrozen", [False, True], ids=["frozen", "unfrozen"])
def test_trained_saved_and_loaded(folder: Path, unfrozen: bool, tmp_path: Path, make_trajectory: Any) -> None:
    """One step moves what is trained; rewards are the same after loading, and with a cache."""
    recipe = replace(RECIPE, encoder=str(folder), unfrozen=unfrozen)
    if folder.name == "mpnet" and unfrozen:
        with pytest.raises(RewardError, match="MPNetModel of transformers cannot compute"):
            build(replace(recipe, gradient_checkpointing=True))
    else:
        recipe = replace(recipe, gradient_checkpointing=unfrozen)
    torch.manual_seed(0)
    model = build(recipe).train()
    contents = [make_trajectory("good sent " * 9), make_trajectory("lost")]
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    states = model.backbone.states([model.backbone.renderer.render(content) for content in contents])
    model.heads.scalar(states.flat).square().mean().backward()
    torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=1.0).step()
    moved = {name for name, tensor in model.named_parameters() if not torch.equal(before[name], tensor)}
    encoder = {name for name in moved if name.startswith(("backbone.encoder.", "backbone.pooling."))}
    layers = {
        number
        for number in range(LAYERS)
        for name in encoder
        if f".{number}." in name.removeprefix("backbone.")
    }
    assert layers == (set(range(LAYERS)) if unfrozen else set())
    assert any(name.startswith("backbone.mixer") for name in moved)
    model.eval()
    reward = {"median": 0.0, "std": 1.0}
    save(model, tmp_path / "model", recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    loaded = load(tmp_path / "model")
    expected = raw(LoadedModel(model, loaded.manifest), contents)
    assert raw(loaded, contents) == pytest.approx(expected, abs=1e-6)
    assert abs(expected[0] - expected[1]) > 1e-4
    assert {path.suffix for path in (tmp_path / "model").iterdir()} <= {".json", ".safetensors"}
    if not unfrozen:
        assert loaded.model.backbone.name == model.backbone.name, "embeddings of the training are found again"
        cache = ChunkCache(10**6)
        for _ in range(2):
            assert raw(loaded, contents, cache=cache) == pytest.approx(expected, abs=1e-6)
        again = replace(RECIPE, encoder=str(tmp_path / "model"))  # the encoder of another model
        first = embedded(replace(RECIPE, encoder=str(folder)), TEXTS[:2])
        np.testing.assert_allclose(embedded(again, TEXTS[:2]), first, atol=1e-6)


def raw(model: LoadedModel, contents: list[Any], **options: Any) -> list[float]:
    return [score.raw for score in model.score([model.render(content) for content in contents], **options)]


def test_embeddings_of_two_encoders_are_never_mixed(folders: dict[str, Path], tmp_path: Path) -> None:
    """One that differs in its pooling, or its dense weights alone, has other names in caches."""
    other = shutil.copytree(folders["bert"], tmp_path / "other")
    names = set()
    for mode in ("mean", "cls", "max"):
        path = other / "1_Pooling" / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"pooling_mode": mode}))
        names.add(name_of(other))
    assert len(names) == 3 and name_of(folders["bert"]) in names
    shutil.rmtree(other / "2_Dense")
    modules = json.loads((other / "modules.json").read_text())
    (other / "modules.json").write_text(json.dumps([each for each in modules if each["path"] != "2_Dense"]))
    assert name_of(other) not in names


def name_of(folder: Path) -> str:
    recipe = replace(RECIPE, encoder=str(folder))
    reads = encoder_renderer(recipe, max_tokens=256, names_speakers=False)
    return pretrained_parts(recipe, reads, None).name


def test_lower_layers_learn_less(folders: dict[str, Path]) -> None:
    """Every parameter of a layer at its own rate, whatever the class calls its layers; mixer and heads as ever."""
    for folder in folders.values():
        recipe = replace(RECIPE, encoder=str(folder), unfrozen=True, encoder_layer_decay=0.5)
        backbone = build(recipe).backbone
        factors = {name: backbone.rate_factor(name) for name, _ in backbone.named_parameters()}
        encoder = {factor for name, factor in factors.items() if name.startswith("encoder.")}
        assert encoder - {1.0} == {0.5**above for above in range(1, LAYERS + 1)}, folder.name
        assert {factor for name, factor in factors.items() if not name.startswith("encoder.")} == {1.0}


def test_the_optimiser_has_these_rates(folders: dict[str, Path]) -> None:
    from workers.train.multi_objective import MultiObjectiveModule

    recipe = replace(RECIPE, encoder=str(folders["bert"]), unfrozen=True, encoder_layer_decay=0.5)
    module = MultiObjectiveModule.__new__(MultiObjectiveModule)
    torch.nn.Module.__init__(module)
    module.model = build(recipe)
    peaks = {group["peak"] for group in make_optimiser(module, recipe).param_groups}
    assert sorted(peaks) == pytest.approx([*(3e-5 * 0.5**above for above in range(LAYERS, -1, -1)), 1e-3])


@pytest.mark.parametrize("name", ["mpnet", "bert"])
def test_no_chunk_is_longer_than_what_it_reads(folders: dict[str, Path], name: str) -> None:
    longest = read_encoder_folder(folders[name]).longest
    assert longest == {"mpnet": 20, "bert": 64}[name]
    recipe = replace(RECIPE, encoder=str(folders[name]), chunk_tokens=longest - 2)
    assert embedded(recipe, TEXTS, unit=True).shape[0] == len(TEXTS)
    with pytest.raises(RewardError, match=f"reads at most {longest - 2}") as error:
        build(replace(recipe, chunk_tokens=longest - 1))
    assert error.value.pointer == "/chunk_tokens"


@pytest.mark.parametrize("backbone", ["step-encoder", "hybrid"])
def test_a_whole_training(
    folders: dict[str, Path],
    run_directory: Any,
    backbone: str,
    make_trajectory: Any,
) -> None:
    """From a run directory that says little: chunks as long as the encoder reads, and prompts among its settings."""
    folder = run_directory()
    values = {"backbone": backbone, "encoder": str(folders["mpnet"]), "encoder_prompt": "query: "}
    values |= (
        {"epochs": 1, "unfrozen": True, "ensemble": 2, "precision": "float32"}
        if backbone == "step-encoder"
        else {}
    )
    config = json.loads((folder / "config.json").read_text()) | {"recipe": values}
    (folder / "config.json").write_text(json.dumps(config))
    train(folder)
    loaded = load(folder / "model")
    manifest = json.loads((folder / "model" / "touchstone.json").read_text())
    assert manifest["text"]["chunk_tokens"] == 20 - 2 - len("query: ")
    assert json.loads((folder / "model" / "encoder.json").read_text())["prompt"] == "query: "
    (score,) = loaded.score([loaded.render(make_trajectory("good sent"))])
    assert np.isfinite(score.raw)


def test_missing_weights_are_named(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(folders["roberta"], tmp_path / "torn")
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        RewardError, match=r"torn lacks weights of its RobertaModel: encoder\.layer\.1"
    ) as error:
        build(replace(RECIPE, encoder=str(folder)))
    assert error.value.pointer == "/encoder"


def test_shards(folders: dict[str, Path], tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = shutil.copytree(folders["roberta"], tmp_path / "shards")
    (folder / "model.safetensors").unlink()
    AutoModel.from_pretrained(folders["roberta"]).save_pretrained(folder, max_shard_size="40KB")
    assert len(read_encoder_folder(folder).weight_files) > 1
    np.testing.assert_allclose(
        embedded(replace(RECIPE, encoder=str(folder)), TEXTS),
        embedded(replace(RECIPE, encoder=str(folders["roberta"])), TEXTS),
        atol=1e-6,
    )
