"""Which trajectories are one: those of one task, source id, agent and content; equal samples of a file are several."""

import io
import json
from pathlib import Path
from typing import Any

from apps.accounts.models import Project
from apps.trajectories import import_chunks, services
from apps.trajectories.exports import export_lines
from apps.trajectories.formats import FORMATS
from apps.trajectories.models import Trajectory
from tests.trajectories.conftest import lines, record


def bring(project: Project, *documents: Any) -> services.ImportResult:
    return services.import_trajectories(project=project, stream=io.BytesIO(lines(*documents)), by=None)


def counts(result: services.ImportResult) -> tuple[int, int, int]:
    return result.created, result.duplicates, result.updated


def test_ten_samples_of_which_eight_are_equal(project: Project, shared_data: Path) -> None:
    raw = (shared_data / "cases/import/passk_10_samples.jsonl").read_bytes()
    for expected in ((10, 0, 0), (0, 10, 0)):
        result = services.import_trajectories(project=project, stream=io.BytesIO(raw), by=None)
        assert counts(result) == expected
    assert Trajectory.objects.filter(success=True).count() == 8
    assert Trajectory.objects.values("content_hash").distinct().count() < 10


def test_equal_words_of_another_agent_are_another_trajectory(project: Project) -> None:
    first = record(1, agent={"name": "a", "version": "1"}, success=True)
    second = record(1, agent={"name": "b", "version": "1"}, success=False)
    third = record(1, agent={"name": "b", "version": "2"}, success=True)
    assert counts(bring(project, first, second, third)) == (3, 0, 0)
    assert counts(bring(project, third, second, first)) == (0, 3, 0)
    assert sorted(Trajectory.objects.values_list("agent_name", "success")) == [
        ("a", True),
        ("b", False),
        ("b", True),
    ]


def test_the_sources_own_id_tells_equal_runs_apart_and_finds_them_again(project: Project) -> None:
    runs = [record(1, id=f"run-{number}") for number in range(3)]
    assert counts(bring(project, *runs, runs[0])) == (3, 1, 0)
    assert counts(bring(project, runs[2])) == (0, 1, 0)
    assert counts(bring(project, record(2, id="run-0"))) == (
        1,
        0,
        0,
    )  # one id, other content: nothing is lost


def test_a_trajectory_sent_again_fills_a_blank_outcome(project: Project) -> None:
    assert counts(bring(project, record(1), record(1))) == (2, 0, 0)
    assert counts(bring(project, record(1, success=True, reward=0.5))) == (0, 1, 1)
    assert counts(bring(project, record(1, success=True, reward=0.5))) == (0, 1, 0)
    outcomes = list(Trajectory.objects.order_by("pk").values_list("success", "outcome_reward"))
    assert outcomes == [(True, 0.5), (None, None)]


def test_another_outcome_is_named_and_the_first_is_kept(project: Project) -> None:
    bring(project, record(1, success=True))
    result = bring(project, record(1, success=False))
    assert counts(result) == (0, 1, 0)
    assert result.dropped.as_json() == [{"path": "", "reason": services.OTHER_OUTCOME, "count": 1}]
    assert Trajectory.objects.get().success is True


def test_equals_in_different_chunks_are_counted(project: Project, monkeypatch: Any) -> None:
    monkeypatch.setattr(import_chunks, "CHUNK", 2)
    assert counts(bring(project, *[record(1)] * 7)) == (7, 0, 0)
    assert counts(bring(project, *[record(1)] * 8)) == (1, 7, 0)


def test_feedback_means_any_trajectory_of_equal_content(project: Project) -> None:
    bring(project, record(1, id="run-1"), record(1, id="run-2"))
    first = Trajectory.objects.order_by("pk")[0]

    read = FORMATS["openai"].read(json.loads(json.dumps(record(1))))
    keys = services.store_trajectories(project=project, trajectories=[read, read], source_format="feedback")
    assert keys == [first.pk, first.pk]


def test_own_exports_bring_nothing(project: Project) -> None:
    bring(project, record(1), record(1), record(2, id="r"), record(3, agent="a"))
    for format in ("atif", "openai", "original"):
        rows = Trajectory.objects.filter(project=project).order_by("pk")
        again = b"".join(export_lines(project, rows, format=format))
        result = services.import_trajectories(project=project, stream=io.BytesIO(again), by=None)
        assert (format, *counts(result)) == (format, 0, 4, 0)
