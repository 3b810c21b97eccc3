"""What core itself keeps: which processes of the installation are alive."""

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
