from pathlib import Path

from touchstone_client import Client

from apps.accounts.models import Project
from apps.trajectories.models import Task
from tests.task_difficulty.test_task_difficulty import add_outcome


def test_tasks_come_in_the_order_to_run_them(client: Client, project: Project, tmp_path: Path) -> None:
    for name, successes in (("easy", 9), ("half", 5)):
        task = Task.objects.create(project=project, external_id=name, instruction=name)
        for trial in range(10):
            add_outcome(project, task, success=trial < successes)
    assert [task["task"] for task in client.tasks.export()] == ["half", "easy"]
    assert [task["task"] for task in client.tasks.export("difficulty", most=1)] == ["easy"]
    saved = client.tasks.export(only="failures", filter="success=no").save(tmp_path / "replay.jsonl")
    assert saved == 2
