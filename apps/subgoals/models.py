"""Lists of subgoals of tasks, which a person accepts, and the jobs in which a language model proposes them."""

from django.db import models

from apps.accounts.models import Project
from apps.proposals.models import ProposalJob, Proposed
from apps.trajectories.models import Task


class SubgoalProposal(ProposalJob):
    """A language model's proposal of subgoals for the tasks of a filter. options: of kind.ProposalOptions.
    tasks: keys of those that have no list yet."""

    what = "subgoals"
    keys_field = "tasks"
    project = models.ForeignKey(Project, models.CASCADE, related_name="subgoal_proposals")
    tasks = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="subgoal_proposal_number")]


class TaskSubgoals(Proposed):
    """The list of a task. subgoals: [{"goal", "expression", "weight"}]. Where a person has accepted it, the metadata of
    the task has it, and the component `subgoals` reads it there; an edit is proposed again, and the metadata keeps what
    was accepted before."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="task_subgoals")
    task = models.OneToOneField(Task, models.CASCADE, related_name="subgoal_list")
    proposal = models.ForeignKey(SubgoalProposal, models.SET_NULL, null=True, related_name="lists")
    subgoals = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"subgoals of {self.task}"
