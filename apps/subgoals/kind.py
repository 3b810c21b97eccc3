"""Subgoals of tasks as a kind of proposal."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.llm.child_access import write_json_lines
from apps.llm.models import SpendingPurpose
from apps.proposals.kinds import ProposalKind
from apps.subgoals.models import SubgoalProposal, TaskSubgoals
from apps.subgoals.selectors import newest_successes, tasks_without_list
from apps.trajectories.masking import mask_text, mask_trajectory
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import stream_trajectories
from apps.trajectories.services import detectors_of
from workers import schema
from workers.subgoals.subgoal_lists import MOST_RUNS

DEFAULT_TASKS, MAX_TASKS = 50, 500


class ProposalOptions(msgspec.Struct, frozen=True, kw_only=True):
    """filter: of trajectories, whose tasks get a list. most: tasks. with_trajectories: whether the language model reads
    up to two successful trajectories of each task."""

    filter: str = ""
    most: int = DEFAULT_TASKS
    with_trajectories: bool = True


class _SubgoalKind(ProposalKind[SubgoalProposal, TaskSubgoals]):
    job, proposed, about = SubgoalProposal, TaskSubgoals, Task
    related = ("project", "task")
    about_field, about_nouns, most = "task", "tasks", MAX_TASKS
    advance = "apps.subgoals.tasks.advance_subgoals"
    verb, noun, this = "subgoals", "subgoals", "These subgoals are"
    none_left = (
        "Every task of these trajectories has subgoals, or no instruction. Change the filter, or reject a list to "
        "have it proposed again."
    )
    child, asking, purpose = "workers.subgoals", "Asking for subgoals", SpendingPurpose.SUBGOALS

    def choose(self, project: Project, trajectories: QuerySet[Trajectory], most: int) -> list[int]:
        return tasks_without_list(project, trajectories, most)

    def write_inputs(
        self, proposal: SubgoalProposal, keys: list[int], folder: Path, check: Callable[[], None]
    ) -> None:
        options = msgspec.convert(proposal.options, ProposalOptions)
        detectors = detectors_of(proposal.project)
        runs = newest_successes(keys, MOST_RUNS) if options.with_trajectories else {}
        lines = [
            {
                "task": task.pk,
                "instruction": mask_text(task.instruction, detectors),
                "trajectories": [str(key) for key in runs.get(task.pk, ())],
            }
            for task in Task.objects.filter(pk__in=keys).order_by("pk")
        ]
        write_json_lines(folder / "tasks.jsonl", lines)
        read = stream_trajectories((key for some in runs.values() for key in some), check=check)
        schema.write_trajectories(
            folder / "trajectories.jsonl.zst", (mask_trajectory(each, detectors)[0] for each in read)
        )

    def values(self, line: Mapping[str, Any]) -> dict[str, Any]:
        return {"subgoals": line["subgoals"]}

    def use(self, own: TaskSubgoals) -> None:
        """The metadata of the task has them from now on, where the component `subgoals` reads them."""
        task = Task.objects.select_for_update().get(pk=own.task_id)
        task.metadata = {**task.metadata, "subgoals": own.subgoals}
        task.save(update_fields=["metadata"])

    def withdraw(self, own: TaskSubgoals) -> None:
        task = Task.objects.select_for_update().get(pk=own.task_id)
        if task.metadata.get("subgoals") == own.subgoals:
            task.metadata = {key: value for key, value in task.metadata.items() if key != "subgoals"}
            task.save(update_fields=["metadata"])

    def audit(self, own: TaskSubgoals) -> tuple[str, dict[str, Any]]:
        return own.task.external_id, {"subgoals": len(own.subgoals)}


SUBGOALS = _SubgoalKind()
