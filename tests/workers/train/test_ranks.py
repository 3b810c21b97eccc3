"""Two processes that train one model, over gloo: equal losses, a resumed run, memory that runs out in one.

They are forks of this process, which has imported torch; `test_memory_that_runs_out_in_one_rank_of_a_sharded_model`
starts them as a training run does.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from tests import forked
from tests.ports import free_port
from tests.workers.decoders import save_decoder
from tests.workers.train.rank_program import train_scenario
from workers.schema import Task, write_records
from workers.schema.recipe import Recipe, parse_recipe, recipe_to_dict
from workers.train.pipeline import train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked_programs")]
LAUNCH = "import sys; from workers.train.distributed.launch import train_together as t; sys.exit(t(sys.argv[1:], 2))"


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A decoder that drops attention weights in training, as some are published."""
    folder = save_decoder(tmp_path_factory.mktemp("decoder"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.2}))
    return folder


@pytest.fixture
def recipe(base) -> Recipe:
    values = {"backbone": "decoder", "decoder": str(base), "max_tokens": 128, "lora_rank": 4, "epochs": 2}
    more = {
        "learning_rate": 3e-3,
        "batch_pairs": 4,
        "batch_tasks": 1,
        "precision": "float32",
        "checkpoint_seconds": 0.0,
    }
    return parse_recipe(values | more | {"evaluations_per_epoch": 1})


@pytest.fixture
def without_dropout(recipe, tmp_path_factory) -> Recipe:
    return replace(recipe, decoder=str(save_decoder(tmp_path_factory.mktemp("plain"))))


@pytest.fixture
def folder(tmp_path, make_preference) -> Path:
    """Two tasks of eight comparisons: a batch of four is one group."""
    records = [_of_task(make_preference(number), f"task-{number % 2}") for number in range(1, 17)]
    write_records(tmp_path / "train.jsonl.zst", records)
    write_records(tmp_path / "validation.jsonl.zst", [make_preference(number) for number in range(20, 27)])
    return tmp_path


def _of_task(record, name):
    sides = {side: msgspec.structs.replace(getattr(record, side), task=Task(id=name)) for side in ("a", "b")}
    return msgspec.structs.replace(record, **sides)


def launch(*arguments: str | Path) -> None:
    program = [sys.executable, "-m", "tests.workers.train.rank_program", *map(str, arguments)]
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, *program],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def run_two(folder: Path, **scenarios: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By scenario, what each rank found. All run in one pair of processes."""
    for name, scenario in scenarios.items():
        (folder / f"{name}.json").write_text(json.dumps(scenario))
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    logs = [folder / f"rank-{rank}.log" for rank in (0, 1)]
    children = [
        forked.start(
            "tests.workers.train.rank_program", [str(folder), *scenarios],
            log=log, given=place | {"LOCAL_WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank, log in enumerate(logs)
    ]  # fmt: skip
    for child, log in zip(children, logs, strict=True):
        assert child.wait(120) == 0, log.read_text()[-3000:]
    return {
        name: [json.loads((folder / f"{name}-{rank}.out.json").read_text()) for rank in (0, 1)]
        for name in scenarios
    }


def test_two_ranks_take_the_steps_of_one_with_equal_losses(folder, without_dropout) -> None:
    """Whole copies and shards; a batch of both, and of each with half as many comparisons. Memory that runs out in the
    second rank only halves what both compute at once."""
    plain, full = without_dropout, replace(without_dropout, lora_rank=0)
    half = replace(plain, batch_pairs=2, batch_per_process=True)
    one = train_scenario(folder, {"recipe": recipe_to_dict(plain)})
    one_full = train_scenario(folder, {"recipe": recipe_to_dict(full)})
    found = run_two(
        folder,
        copies={"recipe": recipe_to_dict(plain)},
        full={"recipe": recipe_to_dict(full)},
        shards={"recipe": recipe_to_dict(replace(full, sharding="always"))},
        lora_shards={"recipe": recipe_to_dict(replace(plain, sharding="always"))},
        per_process={"recipe": recipe_to_dict(half)},
        short={"recipe": recipe_to_dict(plain), "fails_above": {"1": 1}},
    )
    for name, ranks in found.items():
        alone = one_full if name in ("full", "shards") else one
        assert [rank["steps"] for rank in ranks] == [alone["steps"]] * 2 == [8, 8], name
        for rank in ranks:
            assert rank["losses"] == pytest.approx(alone["losses"], abs=1e-5), name
            assert rank["validation"] == pytest.approx(alone["validation"], abs=1e-5), name
            assert rank["sharded"] is ("shards" in name)
    short = found["short"]
    assert short[0]["failures"] == 0 and short[1]["failures"] > 0
    assert short[0]["micro_tokens"] == short[1]["micro_tokens"] < plain.micro_tokens
    assert any("out of memory" in message for message in short[0]["messages"])


def test_each_rank_of_a_sharded_model_writes_its_own_part_and_any_number_of_processes_resumes(
    folder, without_dropout
) -> None:
    full = replace(without_dropout, lora_rank=0, patience=0, evaluations_per_epoch=4)
    sharded, copies = (recipe_to_dict(replace(full, sharding=how)) for how in ("always", "never"))
    begun = {"stop_after": 3, "checkpoints": "one"}
    train_scenario(folder, {"recipe": sharded} | begun)
    shutil.copytree(folder / "one", folder / "older")
    _name_optimiser_state(max((folder / "older").glob("step-*.pt")))
    found = run_two(
        folder,
        whole={"recipe": sharded},
        stopped={"recipe": sharded, "stop_after": 3, "checkpoints": "two"},
        sharded_from_one={"recipe": sharded, "checkpoints": "one"},
        sharded_from_older={"recipe": sharded, "checkpoints": "older"},
    )
    whole, stopped = found["whole"][0], found["stopped"]
    assert [rank["gathers"] for rank in stopped] == [0, 0]  # three checkpoints and three validations
    assert whole["restored"] == whole["weights"] and all(whole["weights"].values())
    _assert_written_by_parts(folder / "two", stopped[0]["weights"])
    for name in ("again", "single"):
        shutil.copytree(folder / "two", folder / name)
    found |= run_two(
        folder,
        copies_from_shards={"recipe": copies, "checkpoints": "two"},
        sharded_again={"recipe": sharded, "checkpoints": "again"},
    )
    found["single"] = [train_scenario(folder, {"recipe": copies, "checkpoints": "single"})]
    for name in ("sharded_from_one", "sharded_from_older", "copies_from_shards", "sharded_again", "single"):
        resumed = found[name][0]
        assert "resumed from the checkpoint at step 3" in resumed["messages"], name
        assert resumed["losses"] == pytest.approx(whole["losses"], abs=1e-5), name
        assert resumed["weights"] == pytest.approx(whole["weights"], rel=1e-4), name
    assert found["sharded_again"][0]["losses"] == whole["losses"]
    assert found["sharded_again"][0]["weights"] == whole["weights"]


def _name_optimiser_state(path: Path) -> None:
    """As earlier versions wrote it for a sharded model: whole, with names where a single process has numbers."""
    state = torch.load(path, weights_only=True)
    optimiser = state["optimiser"]
    optimiser["state"] = {f"parameter {number}": value for number, value in optimiser["state"].items()}
    for group in optimiser["param_groups"]:
        group["params"] = [f"parameter {number}" for number in group["params"]]
    torch.save(state, path)


def _assert_written_by_parts(checkpoints: Path, weights: dict[str, float]) -> None:
    """The newest checkpoint has two files of shards, of about the same size, and no sharded tensor next to them."""
    newest = max(checkpoints.glob("step-*.pt"))
    first, second = sorted(newest.with_suffix(".shards").iterdir())
    assert newest.stat().st_size < first.stat().st_size
    assert first.stat().st_size == pytest.approx(second.stat().st_size, rel=0.1)
    parts = [load_file(file) for file in (first, second)]
    for name, total in weights.items():
        if name.startswith("model."):
            own = [part[f"weights/{name}"].double().abs() for part in parts]
            assert sum(float(values.sum()) for values in own) == pytest.approx(total), name
            assert abs(len(own[0]) - len(own[1])) <= 1, name  # rows


def test_memory_that_runs_out_in_one_rank_of_a_sharded_model(run_directory, without_dropout) -> None:
    """All processes of the command start again from the checkpoint, with smaller micro batches, until it is enough."""
    recipe = replace(without_dropout, batch_pairs=8)
    alone, both = run_directory(recipe), run_directory(replace(recipe, sharding="always"))
    train(alone)
    launch("--run", both, "2")
    assert json.loads((both / "checkpoints" / "micro-tokens.json").read_text()) < recipe.micro_tokens
    first, second = (
        [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        for folder in (alone, both)
    )
    losses = [
        [event["validation"]["loss"] for event in events if "validation" in event]
        for events in (first, second)
    ]
    assert losses[0] and losses[1] == pytest.approx(losses[0], abs=1e-5)


@pytest.mark.parametrize("sharding", [pytest.param("never", marks=pytest.mark.long), "always"])
def test_with_dropout_a_resumed_run_has_the_losses_of_an_uninterrupted_one(folder, recipe, sharding) -> None:
    values = recipe_to_dict(replace(recipe, sharding=sharding))
    found = run_two(
        folder,
        whole={"recipe": values},
        stopped={"recipe": values, "checkpoints": "kept", "stop_after": 3},
        resumed={"recipe": values, "checkpoints": "kept"},
    )
    whole, stopped, resumed = (found[name] for name in ("whole", "stopped", "resumed"))
    assert [rank["steps"] for rank in stopped] == [3, 3]
    assert "resumed from the checkpoint at step 3" in resumed[0]["messages"]
    for rank in (0, 1):
        assert resumed[rank]["losses"] == whole[rank]["losses"]
        assert resumed[rank]["validation"] == whole[rank]["validation"][-len(resumed[rank]["validation"]) :]
        assert resumed[rank]["random"] == whole[rank]["random"]
    assert whole[0]["random"] != whole[1]["random"]  # each rank draws its own
    alone = train_scenario(folder, {"recipe": values})
    assert alone["losses"] != pytest.approx(whole[0]["losses"], abs=1e-5)  # dropout was on
