"""Frozen snapshots of feedback: what a model was trained on never changes under it."""

from django.db import models

from apps.accounts.models import Project, User
from apps.core.jobs import Job


class Snapshot(Job):
    """`project/name@version`. The artifact is a folder: {train,validation,test}.jsonl.zst of workers.schema records."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="snapshots")
    name = models.SlugField(max_length=60)
    version = models.PositiveIntegerField()
    filters = models.JSONField(
        default=dict
    )  # campaigns, kinds, origins, annotators, test_tasks, shares, seed
    content_hash = models.CharField(max_length=64, blank=True)
    records = models.JSONField(default=dict)  # {kind: n}
    splits = models.JSONField(default=dict)  # {"train": n, "validation": n, "test": n}, in records
    tasks = models.JSONField(default=dict)  # the same, in tasks
    annotators = models.JSONField(default=dict)  # {name: {"records": n, "reliability": share or null}}
    usable_pairs = models.PositiveIntegerField(default=0)
    artifact = models.CharField(max_length=255, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    # Something in it was deleted: it is used no more, and its files are removed after a time (erasure.py).
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_because = models.CharField(max_length=200, blank=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name", "version"], name="snapshot_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.project.slug}/{self.name}@{self.version}"
