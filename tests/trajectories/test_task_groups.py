"""Trajectories of a filter as a list of tasks, with how many there are and how often they succeed."""

import csv
import io

from django.test import Client

from apps.accounts.models import Project, User
from apps.trajectories.models import Trajectory
from apps.trajectories.task_groups import group_by_task
from tests.trajectories.test_explorer import says
from tests.trajectories.test_views import bring

LIST = "/p/desk/trajectories/by-task/"


def test_success_rates_of_tasks(project: Project, researcher: User, client: Client) -> None:
    bring(
        project,
        says(1, "a", agent="fox", success=True, reward=1.0),
        says(1, "b", agent="owl", success=False, reward=0.5),
        says(1, "c", agent="owl"),
        says(2, "d", agent="owl", success=True),
        says(3, "e", agent="fox"),
    )
    groups = {group.count: group for group in group_by_task(Trajectory.objects.filter(project=project))}
    most = groups[3]
    assert (most.agents, most.successes, most.known, most.success_rate, most.reward) == (2, 1, 2, 0.5, 0.75)

    def tasks(**query: str) -> list[str]:
        body = client.get(LIST, query).context["table"].body
        return [line.row.task.external_id for line in body]

    assert tasks()[0] == "task-1" and len(tasks()) == 3
    assert tasks(sort="-success_rate") == ["task-2", "task-1", "task-3"], "unknown rates last"
    assert tasks(agent="fox", sort="count") in (["task-1", "task-3"], ["task-3", "task-1"])
    assert tasks(agent="fox", success="perhaps") == []
    page = client.get(LIST, {"success": "perhaps"})
    assert page.status_code == 200 and b"The filter has an error" in page.content
    file = b"".join(client.get(LIST, {"csv": "1", "sort": "-success_rate"}).streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.reader(io.StringIO(file)))
    assert rows[0][:4] == ["Task", "Trajectories", "Agents", "Success rate"]
    assert [row[:4] for row in rows[1:3]] == [["task-2", "1", "1", "1.0"], ["task-1", "3", "2", "0.5"]]
