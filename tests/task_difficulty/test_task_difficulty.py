"""Which task to run next: the page, the command, the API and the client."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.models import AuditEvent, Project, Role, Scope
from apps.accounts.services import create_api_key, create_project
from apps.core.errors import DomainError
from apps.task_difficulty import selectors
from apps.task_difficulty.selectors import estimate_tasks
from apps.trajectories.models import Task, Trajectory
from tests.factories import make_outsider, member_client, signed_in

KINDS = {"refund a broken lamp": 9, "translate a legal contract": 2, "book a table for two": 5}


def add_outcome(project: Project, task: Task, *, agent: str = "a", **outcome: Any) -> Trajectory:
    return Trajectory.objects.create(
        project=project,
        task=task,
        agent_name=agent,
        source_format="openai",
        content_hash="0" * 64,
        step_count=2,
        agent_step_count=1,
        token_count=9,
        **outcome,
    )


@pytest.fixture
def project(db: None) -> Project:
    """Three kinds of tasks, five tried ten times each and one not at all; one more task with a reward only."""
    project = create_project(slug="desk")
    for kind, successes in KINDS.items():
        for number in range(6):
            task = Task.objects.create(
                project=project,
                external_id=f"{kind.split()[0]}-{number}",
                instruction=f"{kind}, case {number}",
            )
            for trial in range(10 if number < 5 else 0):
                add_outcome(project, task, success=trial < successes)
    rewarded = Task.objects.create(project=project, external_id="graded", instruction="write a poem")
    add_outcome(project, rewarded, outcome_reward=0.25)
    add_outcome(project, rewarded, outcome_reward=7.0)  # no chance is above 1
    add_outcome(project, rewarded, agent="b", success=True)
    return project


def exported(*arguments: str, out: Path) -> list[dict[str, Any]]:
    call_command("export_tasks", *arguments, "--out", str(out))
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_untried_tasks_stand_next_to_tried_ones_of_their_kind(project: Project, tmp_path: Path) -> None:
    rows = exported("desk", "--order", "difficulty", out=tmp_path / "tasks.jsonl")
    assert len(rows) == 19
    found = {row["task"]: row for row in rows}
    assert found["refund-5"]["outcomes"] == {"known": 0, "successes": 0.0, "failures": 0}
    assert found["refund-5"]["success"]["expected"] > 0.75
    assert found["translate-5"]["success"]["expected"] < 0.4
    assert [row["difficulty"] for row in rows] == sorted(row["difficulty"] for row in rows)
    wide, narrow = (
        found[name]["success"]["high"] - found[name]["success"]["low"] for name in ("book-5", "book-0")
    )
    assert wide > narrow


def test_what_can_be_learnt_most_comes_first(project: Project, tmp_path: Path) -> None:
    rows = exported("desk", "--order", "learnability", out=tmp_path / "tasks.jsonl")
    assert {row["task"].split("-")[0] for row in rows[:5]} == {"book"}


def test_failures_are_a_list_to_replay(project: Project, tmp_path: Path) -> None:
    rows = exported("desk", "--only", "failures", "--most", "3", out=tmp_path / "tasks.jsonl")
    assert len(rows) == 3
    for row in rows:
        failed = list(
            Trajectory.objects.filter(task__external_id=row["task"], success=False)
            .order_by("-pk")
            .values_list("pk", flat=True)
        )
        assert row["replay"] == failed and len(failed) == row["outcomes"]["failures"]
    untried = exported("desk", "--only", "untried", out=tmp_path / "untried.jsonl")
    assert {row["task"] for row in untried} == {"refund-5", "translate-5", "book-5"}


def test_rewards_count_in_part_and_only_those_of_the_filter(project: Project, tmp_path: Path) -> None:
    everyone = {row["task"]: row for row in exported("desk", out=tmp_path / "all.jsonl")}
    assert everyone["graded"]["outcomes"] == {"known": 3, "successes": 2.25, "failures": 1}
    one_agent = {row["task"]: row for row in exported("desk", "--agent", "b", out=tmp_path / "b.jsonl")}
    assert one_agent["graded"]["outcomes"] == {"known": 1, "successes": 1.0, "failures": 0}
    assert one_agent["refund-0"]["outcomes"]["known"] == 0


def test_the_order_of_the_newest_tasks_where_there_are_too_many(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "MOST_TASKS", 7)
    rows = estimate_tasks(project, order="difficulty")
    assert {row.task.external_id.split("-")[0] for row in rows} == {"book", "graded"}


def test_wrong_arguments_are_refused(project: Project) -> None:
    with pytest.raises(DomainError, match="must be one of difficulty, learnability, uncertainty"):
        estimate_tasks(project, order="age")
    with pytest.raises(CommandError, match="--most is 0; it must be at least 1"):
        call_command("export_tasks", "desk", "--most", "0")


def test_no_outcome_is_no_order(db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = create_project(slug="empty")
    Task.objects.create(project=empty, external_id="t", instruction="do it")
    assert exported("empty", out=tmp_path / "tasks.jsonl") == []
    assert "No outcome is known; no task was exported." in capsys.readouterr().err
    page = member_client(empty, Role.RESEARCHER).get(
        reverse("task_difficulty:task-difficulty", args=["empty"])
    )
    assert b"No known outcomes" in page.content


def test_the_page_sorts_filters_and_exports(project: Project) -> None:
    client = member_client(project, Role.RESEARCHER)
    address = reverse("task_difficulty:task-difficulty", args=["desk"])
    page = client.get(address).content.decode()
    assert page.index("book-0") < page.index("refund-0")
    assert "order=difficulty" in page
    only = client.get(address, {"only": "untried"}).content.decode()
    assert "refund-5" in only and "refund-0" not in only
    assert client.get(address, {"agent": "stranger"}).status_code == 422
    export = client.get(reverse("task_difficulty:tasks-export", args=["desk"]), {"order": "difficulty"})
    lines = [json.loads(line) for line in b"".join(export.streaming_content).splitlines()]
    assert len(lines) == 19
    assert AuditEvent.objects.filter(project=project, verb="tasks.exported", target="difficulty").exists()


def test_strangers_and_annotators_see_no_tasks(project: Project) -> None:
    address = reverse("task_difficulty:task-difficulty", args=["desk"])
    assert signed_in(make_outsider()).get(address).status_code == 404
    assert member_client(project, Role.ANNOTATOR).get(address).status_code == 403
    assert member_client(project, Role.RESEARCHER).post(address).status_code == 405


def test_the_api_needs_the_scope_and_gives_the_same_lines(project: Project, tmp_path: Path) -> None:
    _, key = create_api_key(project=project, scopes=[Scope.INGEST])
    _, other = create_api_key(project=project, scopes=[Scope.REWARD])
    address = "/api/v1/projects/desk/tasks/export"
    caller = Client()
    refused = caller.get(address, headers={"Authorization": f"Bearer {other}"})
    assert refused.status_code == 403
    answer = caller.get(
        address, {"order": "uncertainty", "most": 2}, headers={"Authorization": f"Bearer {key}"}
    )
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert lines == exported("desk", "--order", "uncertainty", "--most", "2", out=tmp_path / "t.jsonl")
    wrong = caller.get(address, {"order": "age"}, headers={"Authorization": f"Bearer {key}"})
    assert wrong.status_code == 422
