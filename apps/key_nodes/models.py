"""Key nodes of tasks, and which of them each trajectory reaches."""

from typing import Any

from django.db import models

from apps.accounts.models import Project, User
from apps.trajectories.models import Task, Trajectory


class TaskKeyNodes(models.Model):
    """Of a task. nodes: of workers.schema.key_nodes, as JSON without what is not given. The metadata of the task has
    them as `key_nodes`, where the component reads them. revision: grows with every change."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="task_key_nodes")
    task = models.OneToOneField(Task, models.CASCADE, related_name="key_node_list")
    nodes = models.JSONField(default=list)
    in_order = models.BooleanField(default=False)
    revision = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")

    class Meta:
        verbose_name_plural = "task key nodes"

    def __str__(self) -> str:
        return f"key nodes of {self.task}"

    @property
    def document(self) -> dict[str, Any]:
        """As the component and the API have them."""
        return {"nodes": self.nodes, "in_order": self.in_order}


class KeyNodeCompletion(models.Model):
    """What a trajectory reaches of a revision of the key nodes. steps: for each node the first step that reaches it
    (counted from 0), or null. share: of the nodes, 0 to 1. unexpected: places of the nodes whose observation is another
    than the expected one."""

    trajectory = models.OneToOneField(Trajectory, models.CASCADE, related_name="key_node_completion")
    key_nodes = models.ForeignKey(TaskKeyNodes, models.CASCADE, related_name="completions")
    revision = models.PositiveIntegerField()
    steps = models.JSONField(default=list)
    share = models.FloatField()
    unexpected = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.reached} of {len(self.steps)} key nodes"

    @property
    def reached(self) -> int:
        return sum(step is not None for step in self.steps)
