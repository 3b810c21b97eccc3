"""What core itself keeps: which processes of the installation are alive, which artifact store it has, and how users
have their tables."""

import uuid

from django.conf import settings
from django.db import models


class Service(models.Model):
    """A process, as it last spoke of itself; see `apps.core.processes.heartbeats`."""

    name = models.CharField(max_length=20)  # web, rewards, default, gpu, beat
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    home = models.CharField(max_length=1000)
    version = models.CharField(max_length=40)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()  # by the database's clock

    class Meta:
        constraints = [models.UniqueConstraint(fields=["host", "pid"], name="service_once")]

    def __str__(self) -> str:
        return f"{self.name} ({self.host}, process {self.pid})"


class StoreIdentity(models.Model):
    """The artifact store of the installation, one row; see `apps.core.storage.store_identity`.

    place: where the process that looked last has it. stored_at: when the identity was first found in the store.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    identity = models.UUIDField(default=uuid.uuid4)
    place = models.JSONField()
    stored_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="store_identity_once")]

    def __str__(self) -> str:
        return str(self.identity)


class TableDisplay(models.Model):
    """How a user has a table (apps.core.tables). columns: {name: whether it is shown}, where they chose it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    table = models.CharField(max_length=60)
    columns = models.JSONField(default=dict)
    page_size = models.PositiveSmallIntegerField(default=50)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "table"], name="table_display_once")]

    def __str__(self) -> str:
        return f"{self.table} of {self.user}"
