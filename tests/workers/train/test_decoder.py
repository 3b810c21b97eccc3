"""Decoders in training: full and by adapters, alone and on two ranks, and what a task's comparisons share."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch

from tests.workers.decoders import save_decoder
from workers.errors import RewardError
from workers.models import load, renderer_of
from workers.objectives import Examples, collect
from workers.schema.recipe import Recipe, parse_recipe
from workers.train.limits import TrainingLimits, TrainingStopped
from workers.train.multi_objective import MultiObjectiveModule
from workers.train.older_checkpoints import marks, recipe_as_begun
from workers.train.pipeline import train
from workers.train.trainer import RewardTrainer


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return save_decoder(tmp_path_factory.mktemp("decoder"))


@pytest.fixture
def recipe(base) -> Recipe:
    values = {"backbone": "decoder", "decoder": str(base), "max_tokens": 128, "lora_rank": 0, "epochs": 3}
    more = {
        "learning_rate": 3e-3,
        "batch_pairs": 4,
        "precision": "float32",
        "patience": 0,
        "evaluations_per_epoch": 1,
    }
    return parse_recipe(values | more)


@pytest.fixture
def fit(preferences):
    def make(
        recipe: Recipe, *, records=preferences, validation=(), **fields
    ) -> tuple[RewardTrainer, list[dict]]:
        said: list[dict] = []
        renderer = renderer_of(recipe)
        torch.manual_seed(1)
        module = MultiObjectiveModule(recipe, collect(records, renderer, recipe), seed=1)
        known = collect(validation, renderer, recipe) if validation else Examples()
        return RewardTrainer(
            module, recipe, known, seed=1, report=lambda **event: said.append(event), **fields
        ), said

    return make


@pytest.mark.parametrize("rank", [0, 4])
def test_it_learns_which_is_better_and_moves_what_it_should(fit, recipe, rank: int) -> None:
    one, _ = fit(replace(recipe, epochs=8, lora_rank=rank, learning_rate=0.01 if rank else 3e-3))
    before = {name: tensor.detach().clone() for name, tensor in one.model.named_parameters()}
    one.run()
    assert sum(one.losses[-6:]) < 0.7 * sum(one.losses[:6])
    moved = {name for name, tensor in one.model.named_parameters() if not torch.equal(tensor, before[name])}
    trainable = {name for name, tensor in one.model.named_parameters() if tensor.requires_grad}
    assert moved == trainable
    assert ("lora" in " ".join(trainable)) is bool(rank)
    assert not rank or not any("base_layer" in name for name in trainable)


def test_checkpointed_activations_change_nothing(fit, recipe) -> None:
    whole, _ = fit(recipe)
    whole.run()
    again, _ = fit(replace(recipe, gradient_checkpointing=True))
    again.run()
    assert again.losses == pytest.approx(whole.losses, abs=1e-5)


def test_parts_of_a_batch_add_up(fit, recipe) -> None:
    whole, _ = fit(recipe)
    whole.run()
    parted, _ = fit(replace(recipe, micro_tokens=64))
    parted.run()
    assert parted.losses == pytest.approx(whole.losses, abs=1e-4)


@pytest.mark.parametrize("rank", [0, 4])
def test_stopped_and_taken_up_again_it_is_the_same(fit, recipe, preferences, tmp_path, rank: int) -> None:
    recipe = replace(recipe, lora_rank=rank, patience=3)
    data = {"records": preferences[:16], "validation": preferences[16:]}
    whole, _ = fit(recipe, **data)
    whole.run()
    stopped, _ = fit(recipe, **data)
    stopped.limits = TrainingLimits(lambda: stopped.step == 5, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    again, _ = fit(recipe, **data, limits=TrainingLimits(checkpoints=tmp_path))
    again.run()
    assert again.losses == whole.losses
    theirs = dict(whole.model.named_parameters())
    assert all(torch.equal(one, theirs[name]) for name, one in again.model.named_parameters())
    names = set(torch.load(max(tmp_path.glob("*.pt")), weights_only=True)["weights"])
    assert bool(rank) is not any("embed_tokens" in name for name in names)  # only what is trained is kept


def test_a_resumed_run_keeps_the_frozen_weights_it_began_with(
    fit, recipe, preferences, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a run of an earlier version went on in bfloat16 on a GPU, where it had trained on float32."""
    recipe = replace(recipe, lora_rank=4, precision="auto", epochs=1)
    stopped, _ = fit(recipe, records=preferences[:8])
    stopped.limits = TrainingLimits(lambda: stopped.step == 1, checkpoints=tmp_path)
    with pytest.raises(TrainingStopped):
        stopped.run()
    path = max(tmp_path.glob("*.pt"))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    state = torch.load(path, weights_only=True)
    assert state["frozen_weights"] == "float32"
    in_bfloat16 = replace(recipe, base_weights="bfloat16")
    other, _ = fit(in_bfloat16, records=preferences[:8], limits=TrainingLimits(checkpoints=tmp_path))
    with pytest.raises(
        RewardError, match="frozen weights in float32, and they are bfloat16 here; set base_weights"
    ):
        other.run()
    torch.save({name: state[name] for name in state if name != "frozen_weights"}, path)
    assert recipe_as_begun(tmp_path, recipe, "cuda:0").base_weights == "float32"
    assert recipe_as_begun(tmp_path, recipe, "cpu") is recipe
    assert recipe_as_begun(tmp_path / "none", recipe, "cuda:0") is recipe
    assert recipe_as_begun(tmp_path, in_bfloat16, "cuda:0") is in_bfloat16
    again, _ = fit(recipe, records=preferences[:8], limits=TrainingLimits(checkpoints=tmp_path))
    again.run()
    assert again.step == 2
    torch.save(state | {"frozen_weights": marks(other.module)["frozen_weights"]}, max(tmp_path.glob("*.pt")))
    assert recipe_as_begun(tmp_path, recipe, "cuda:0") is recipe, "begun in bfloat16"
    assert recipe_as_begun(tmp_path, recipe, "cpu").base_weights == "bfloat16"


@pytest.mark.long  # test_ranks.py starts two processes of a training run too
@pytest.mark.parametrize("rank", [0, 4])
def test_two_ranks_do_what_one_does(run_directory, recipe, preferences, rank: int) -> None:
    recipe = replace(recipe, lora_rank=rank, checkpoint_seconds=0.0)
    alone, both = run_directory(recipe), run_directory(recipe)
    module = ["-m", "workers.train"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    together = (
        [*module, str(both), "--processes", "2"] if rank else [*torchrun, *module, str(both), "--alone"]
    )
    train(alone)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, *together],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    losses = [
        [event["validation"]["loss"] for event in map(json.loads, lines) if "validation" in event]
        for lines in ((folder / "events.jsonl").read_text().splitlines() for folder in (alone, both))
    ]
    assert losses[0]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    ours, theirs = (load(folder / "model") for folder in (both, alone))
    for record in preferences[:6]:
        (first,), (second,) = ([score.raw for score in m.score([m.render(record.a)])] for m in (ours, theirs))
        assert first == pytest.approx(second, abs=1e-3)


def test_a_pair_longer_than_the_decoder_is_trained_on_and_said_so(
    fit, recipe, make_preference, make_trajectory
) -> None:
    """A peer leaves it out, and says nothing."""
    long = make_preference(0)
    long = msgspec.structs.replace(long, a=make_trajectory("good " * 400, task="t0"))
    one, _ = fit(recipe, records=[long, make_preference(1)])
    assert len(one.examples) == 2
    assert [rendered.truncated for rendered in one.examples.rendered] == [True, False, False, False]
    one.run()
    assert len(one.losses) == recipe.epochs
