"""Lists of subgoals of tasks, which a person accepts, and the jobs in which a language model proposes them."""

from django.db import models

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection
from apps.trajectories.models import Task


class SubgoalProposal(Job):
    """A language model's proposal of subgoals for the tasks of a filter. options: of services.ProposalOptions.
    tasks: keys of those that have no list yet. result: {"usage", "prompts", "problems": {task: sentence}}."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="subgoal_proposals")
    number = ProjectNumberField()
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="+")
    options = models.JSONField(default=dict)
    tasks = models.JSONField(default=list)
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="subgoal_proposal_number")]

    def __str__(self) -> str:
        return f"subgoal proposal {self.pk}"

    @property
    def title(self) -> str:
        """For people, within the project."""
        return f"Proposal of subgoals {self.number}"


class TaskSubgoals(models.Model):
    """The list of a task. subgoals: [{"goal", "expression", "weight"}]. Where a person has accepted it, the metadata of
    the task has it, and the component `subgoals` reads it there; an edit is proposed again, and the metadata keeps what
    was accepted before."""

    class State(models.TextChoices):
        PROPOSED = "proposed", "Proposed"
        ACCEPTED = "accepted", "Accepted"
        REJECTED = "rejected", "Rejected"

    project = models.ForeignKey(Project, models.CASCADE, related_name="task_subgoals")
    task = models.OneToOneField(Task, models.CASCADE, related_name="subgoal_list")
    proposal = models.ForeignKey(SubgoalProposal, models.SET_NULL, null=True, related_name="lists")
    subgoals = models.JSONField(default=list)
    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"subgoals of {self.task}"
