"""What people get wrong, from the run directory on: each ends in a sentence that helps."""

import json
from dataclasses import replace

import msgspec
import pytest

from tests.workers.conftest import preference, trajectory
from tests.workers.decoders import save_decoder
from workers.errors import RewardError
from workers.schema import OutcomeRecord, ScoreRecord
from workers.schema.recipe import parse_recipe
from workers.train.pipeline import train


def outcomes(count: int) -> list[OutcomeRecord]:
    return [
        OutcomeRecord(trajectory=trajectory(f"good {n}", task=f"t{n}"), success=True) for n in range(count)
    ]


def same_scores(count: int) -> list[ScoreRecord]:
    return [
        ScoreRecord(
            trajectory=trajectory(f"good {n}", task=f"t{n}"),
            criterion="polite",
            value=3.0,
            scale=(1.0, 5.0),
            annotator="ann",
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("recipe", "records", "sentence"),
    [
        ({"objective": "outcome"}, outcomes(6), "all 6 trajectories succeeded"),
        ({}, [preference(n, choice="tie") for n in range(6)], "all 6 comparisons are ties; nothing says"),
        (
            {"criterion": "polite"},
            [preference(n) for n in range(6)],
            "0 usable feedback records .left out: 6 .*criterion",
        ),
        (
            {"objective": "regression"},
            [preference(n) for n in range(6)],
            "learns from ratings, rubric scores",
        ),
        ({"objective": "regression"}, same_scores(6), "all 6 ratings and scores are the same"),
        ({"objective": "process"}, [preference(n) for n in range(6)], "process learns from step labels"),
    ],
)
def test_nothing_to_learn(run_directory, tiny_recipe, recipe: dict, records: list, sentence: str) -> None:
    with pytest.raises(RewardError, match=sentence) as error:
        train(run_directory(replace(tiny_recipe, **recipe), {"train": records}))
    assert error.value.pointer == "/snapshot"


def test_an_empty_validation_split(run_directory, tiny_recipe, preferences) -> None:
    folder = run_directory(
        replace(tiny_recipe, epochs=1), {"train": preferences[:12], "test": preferences[12:]}
    )
    report = train(folder)
    messages = [
        json.loads(line).get("message", "") for line in (folder / "events.jsonl").read_text().splitlines()
    ]
    assert "no validation data: training runs all epochs and keeps the last weights" in messages
    assert report["calibration"]["temperature"] == 1.0


def test_longer_than_what_is_read(run_directory, tiny_recipe) -> None:
    records = [
        msgspec.structs.replace(record, a=trajectory("good fine " * 200, task=record.a.task.id))
        for record in (preference(n) for n in range(16))
    ]
    report = train(run_directory(replace(tiny_recipe, epochs=1), {"train": records[:8], "test": records[8:]}))
    assert report["truncated"] == {"n": 8, "of": 16}
    (found,) = [finding for finding in report["findings"] if finding["name"] == "truncated"]
    assert found["sentence"] == (
        "8 of 16 trajectories were too long and lost their middle; raise max_tokens."
    )


def test_more_than_a_decoder_can_read(run_directory, tmp_path) -> None:
    base = save_decoder(tmp_path / "decoder")
    recipe = parse_recipe({"backbone": "decoder", "decoder": str(base), "max_tokens": 100_000})
    with pytest.raises(RewardError, match="max_tokens = 100000, but this decoder reads at most") as error:
        train(run_directory(recipe))
    assert error.value.pointer == "/max_tokens"


def test_a_gpu_that_is_not_there(run_directory) -> None:
    with pytest.raises(
        RewardError, match=r"torch finds no GPU on this machine; .*TOUCHSTONE_TRAINING_DEVICE"
    ):
        train(run_directory(device="cuda"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"backbone": "mamba"}, "backbone = 'mamba': known are 'step-encoder', 'decoder', 'features'"),
        ({"backbone": "decoder"}, "needs `decoder`, the name of a causal language model"),
        ({"objective": "dpo"}, "there is no objective 'dpo'; known are bradley_terry"),
        ({"epochs": 0}, "epochs = 0: Expected `int` >= 1"),
    ],
)
def test_recipes(values: dict, sentence: str) -> None:
    with pytest.raises(RewardError, match=sentence):
        parse_recipe(values)
