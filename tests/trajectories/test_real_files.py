"""Every file of trajectories that others published: in, counted against the source, and through ATIF and back."""

import json
from pathlib import Path

import pytest

from tests.trajectories.atif_peer import harbor_errors, has_harbor
from tests.trajectories.real_files import SOURCES, Source, comes_back, counts, expected, read
from workers.schema import to_atif


@pytest.mark.parametrize("source", SOURCES, ids=[source.name for source in SOURCES])
def test_everything_of_the_source_is_there(shared_data: Path, source: Source) -> None:
    paths = sorted(shared_data.glob(source.pattern))
    assert len(paths) == source.files
    total = 0
    for path in paths:
        name, found = read(path)
        assert name == source.format
        assert counts(found) == expected(path, source), path
        assert all(comes_back(trajectory) for trajectory in found)
        if has_harbor():
            assert [harbor_errors(to_atif(trajectory)) for trajectory in found] == [[] for _ in found], path
        total += len(found)
    assert total == source.trajectories


def test_outcomes_are_outcomes(shared_data: Path) -> None:
    def right(pattern: str) -> int:
        found = [trajectory for path in shared_data.glob(pattern) for trajectory in read(path)[1]]
        assert all(trajectory.success is not None for trajectory in found)
        return sum(bool(trajectory.success) for trajectory in found)

    assert right("tau_bench/*.json") == 43
    assert right("agentrx_tau/tau_dataset_full.json") == 73
    assert right("mint/*/*.jsonl") == 384
    assert right("who_and_when/*/*.json") == 0
    assert right("inspect_ai/*.json") == 6


def test_no_outcome_stands_in_what_a_model_reads(shared_data: Path) -> None:
    for pattern, leaks in (
        ("mint/alfworld/*.jsonl", ("terminate_reason", "task_success")),
        ("who_and_when/*/1.json", ("mistake_reason", "is_correct")),
        ("inspect_ai/*.json", ("model_graded_fact", "explanation")),
        ("agentrx_tau/tau_dataset_full.json", ("gt_data_hash",)),
    ):
        for path in shared_data.glob(pattern):
            for trajectory in read(path)[1]:
                shown = json.dumps([step["extra"] | step for step in to_atif(trajectory)["steps"]])
                assert not any(leak in shown for leak in leaks), path


def test_tasks_that_are_the_same_are_one(shared_data: Path) -> None:
    """One issue under ten configurations, whose prompts differ; a question asked of four models."""
    paths = shared_data.glob("swe_agent/*/marshmallow-code__marshmallow-1867.traj")
    issues = [trajectory.task for path in paths for trajectory in read(path)[1]]
    assert len(issues) == 8 and len({task.instruction for task in issues}) == 1
    assert issues[0].instruction.startswith("TimeDelta serialization precision")
    models = [read(path)[1] for path in sorted(shared_data.glob("mint/hotpotqa/*.jsonl"))]
    assert {model.task.id for model in models[0]} == {model.task.id for model in models[1]}
    assert len({model.task.id for model in models[0]}) == 43
