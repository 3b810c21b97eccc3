"""All baselines of a training, and what they cost."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.workers.conftest import preference
from workers.models import build, renderer_of
from workers.models.backbones import chunk_encoder
from workers.schema.recipe import parse_recipe
from workers.train.pipeline import train

pytestmark = [pytest.mark.ml, pytest.mark.usefixtures("with_linear_baseline")]


def splits() -> dict:
    records = [preference(number) for number in range(60)]
    return {"train": records[:36], "validation": records[36:42], "test": records[42:]}


@pytest.mark.parametrize("backbone", ["step-encoder", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_a_report_has_them_and_names_the_best_and_nothing_is_embedded_twice(
    monkeypatch, run_directory, tiny_recipe, backbone
) -> None:
    """With the encoder that comes with the installation; another one's copy in the model has another name."""
    encoded: Counter[tuple[int, ...]] = Counter()
    encode = chunk_encoder.encode

    def counted(encoder, chunks, **options):
        encoded.update(chunks)
        return encode(encoder, chunks, **options)

    monkeypatch.setattr(chunk_encoder, "encode", counted)
    part = train(
        run_directory(replace(tiny_recipe, encoder="embedded", backbone=backbone, epochs=1), splits=splits())
    )["preference"]
    assert set(part["baselines"]) - {"longer", "shorter", "fewer_steps"} == {
        "linear",
        "structure",
        "neighbours",
    }
    best = part["best_baseline"]
    assert (best["n"], best["tasks"]) == (42, 42)
    assert best["name"] == "longer"  # of equals the simplest
    assert best["value"] == best["values"]["linear"] == 1.0
    assert max(encoded.values()) == 1


def test_a_linear_model_is_no_baseline_of_itself(run_directory, tiny_recipe) -> None:
    recipe = parse_recipe({"backbone": "linear"})
    part = train(run_directory(recipe, splits=splits()))["preference"]
    assert set(part["baselines"]) == {"longer", "shorter", "fewer_steps", "structure"}
    some = replace(recipe, channels=("words",))
    assert "linear" in train(run_directory(some, splits=splits()))["preference"]["baselines"]


def test_both_kinds_of_models_embed_the_text_of_a_step(tiny_encoder, make_trajectory) -> None:
    """A hybrid model of all layers, and a step-encoder, whose step is one chunk."""
    run = make_trajectory("good order was sent", question="hello")
    values = {"encoder": str(tiny_encoder), "chunk_tokens": 16, "width": 16, "attention_heads": 2}
    step_encoder = parse_recipe(values)
    model = build(step_encoder)
    (found,) = model.backbone.step_embeddings([renderer_of(step_encoder).render(run)])
    assert found.shape == (1, 32)
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=1e-5)
    (other,) = model.backbone.step_embeddings(
        [renderer_of(step_encoder).render(make_trajectory("good order was sent", question="order lost"))]
    )
    assert found == pytest.approx(other, abs=1e-6)  # what others wrote is no part of it
    hybrid = parse_recipe({"backbone": "hybrid", "encoder": str(tiny_encoder), "chunk_tokens": 16})
    (found,) = build(hybrid).backbone.step_embeddings([renderer_of(hybrid).render(run)])
    assert found.shape == (1, 32)
    assert build(replace(step_encoder, unfrozen=True)).backbone.step_embeddings([]) is None
