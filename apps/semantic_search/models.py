"""Embedded passages of trajectories, and clusters of trajectories by them."""

from collections.abc import Sequence
from typing import Any

from django.db import models

from apps.accounts.models import Project, User
from apps.core.jobs.job_queue import Job
from apps.trajectories.filters import LONGEST_QUERY
from apps.trajectories.models import Trajectory


class RealArrayField(models.Field):
    """Numbers in single precision: `real[]`. ArrayField has double precision only."""

    def db_type(self, connection: Any) -> str:
        return "real[]"

    def get_db_prep_value(
        self, value: Sequence[float] | None, connection: Any, prepared: bool = False
    ) -> Any:
        return None if value is None else [float(number) for number in value]


class TrajectoryPassage(models.Model):
    """Steps first_step to last_step of a trajectory, embedded as one text by the embedded encoder, of unit length."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="passages")
    first_step = models.PositiveIntegerField()
    last_step = models.PositiveIntegerField()
    embedding = RealArrayField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "first_step"], name="passage_once"),
        ]

    def __str__(self) -> str:
        return f"{self.trajectory_id}: steps {self.first_step} to {self.last_step}"


class TrajectoryClustering(Job):
    """Trajectories that pass a filter, put into clusters by the mean of their passages' embeddings.

    query: the filter, as the explorer's address has it. cluster_count: None to choose it by the silhouette.
    matching: how many passed the filter; those without passages are left out, and at most MAX_CLUSTERED are drawn.
    result: {"clusters": [{"terms": [...], "count", "share"}], "silhouette", "drawn"}.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="trajectory_clusterings")
    query = models.CharField(max_length=LONGEST_QUERY, blank=True)
    cluster_count = models.PositiveSmallIntegerField(null=True)
    matching = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True)
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"clustering {self.pk}"


class ClusterMember(models.Model):
    """A trajectory in its cluster. x, y: its place on the map. distance: to the centre of its cluster, by cosine."""

    clustering = models.ForeignKey(TrajectoryClustering, models.CASCADE, related_name="members")
    trajectory = models.ForeignKey(Trajectory, models.CASCADE, related_name="+")
    cluster = models.PositiveSmallIntegerField()
    x = models.FloatField()
    y = models.FloatField()
    distance = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["clustering", "trajectory"], name="cluster_member_once"),
        ]
        indexes = [models.Index(fields=["clustering", "cluster", "distance"], name="cluster_member_nearest")]

    def __str__(self) -> str:
        return f"{self.trajectory_id} in cluster {self.cluster} of {self.clustering_id}"
