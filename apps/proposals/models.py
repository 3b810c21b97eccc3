"""What a language model proposes about tasks or trajectories, and a person decides. Without tables: apps above have
them."""

from typing import ClassVar

from django.db import models
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.project_numbers import ProjectNumberField
from apps.core.jobs.job_queue import Job
from apps.llm.models import LLMConnection


class ProposalJob(Job):
    """A job in which a language model writes something for each of some rows. options: what it was started with.
    result: {"usage", "prompts", "problems": {key: sentence}}.

    A subclass has `project`, and a JSON list of the keys of these rows in the field named `keys_field`.
    """

    what: ClassVar[str]  # is proposed, for people
    keys_field: ClassVar[str]
    project: "models.ForeignKey[Project, Project]"
    project_id: int
    number = ProjectNumberField()
    llm_connection = models.ForeignKey(LLMConnection, models.SET_NULL, null=True, related_name="+")
    options = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"

    @property
    def title(self) -> str:
        """For people, within the project."""
        return f"Proposal of {self.what} {self.number}"

    @property
    def keys(self) -> list[int]:
        keys: list[int] = getattr(self, self.keys_field)
        return keys


class Proposed(models.Model):
    """What was proposed for a row: it waits for a person, and is used once one has accepted it. An edit waits again.

    A subclass has `project`, `proposal` and a one-to-one field to the row.
    """

    class State(models.TextChoices):
        PROPOSED = "proposed", "Proposed"
        ACCEPTED = "accepted", "Accepted"
        REJECTED = "rejected", "Rejected"

    project: "models.ForeignKey[Project, Project]"
    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        abstract = True

    def wait(self) -> None:
        """For a person, again. Without saving."""
        self.state, self.decided_at, self.decided_by = self.State.PROPOSED, None, None

    def decide(self, state: str, person: User) -> None:
        """Without saving."""
        self.state, self.decided_at, self.decided_by = state, timezone.now(), person
