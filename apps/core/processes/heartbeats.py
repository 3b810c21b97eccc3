"""Every process says in the database, every few seconds, that it is there: `doctor` and the health page read it."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.models import ExpressionWrapper, F, fields
from django.db.models.functions import Now
from django.utils import timezone

from apps.core.distributions import installed_version
from apps.core.models import Service

log = logging.getLogger(__name__)

EVERY_SECONDS = 10.0
SILENT_AFTER = timedelta(seconds=30)
FORGOTTEN_AFTER = timedelta(hours=1)
NAMES = ("web", "rewards", "default", "gpu", "beat")


@contextmanager
def record_heartbeats(name: str) -> Iterator[None]:
    """Be seen as `name` for as long as the block runs; gone from the list when it ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_record_until, args=(name, stop), name="presence", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(5.0)


@dataclass(frozen=True)
class ProcessStatus:
    """A process that is or was there. silence: since it last spoke."""

    service: Service
    silence: timedelta

    @property
    def is_silent(self) -> bool:
        return self.silence > SILENT_AFTER


def process_statuses() -> list[ProcessStatus]:
    silence = ExpressionWrapper(Now() - F("seen_at"), output_field=fields.DurationField())
    rows = Service.objects.annotate(silence=silence).order_by("name", "host", "pid")
    return [ProcessStatus(row, row.silence) for row in rows]


def delete_stale() -> int:
    """Delete who has said nothing for long, killed or unplugged. Returns how many; beat calls it."""
    return Service.objects.filter(seen_at__lt=Now() - FORGOTTEN_AFTER).delete()[0]


def _record_until(name: str, stop: threading.Event) -> None:
    host, pid, first = socket.gethostname(), os.getpid(), True
    facts: dict[str, Any] = {"name": name, "home": str(settings.HOME), "version": installed_version()}
    facts["started_at"] = timezone.now()
    while True:
        try:
            if first:
                _delete_predecessors(host)
            Service.objects.update_or_create(host=host, pid=pid, defaults=facts | {"seen_at": Now()})
            first = False
        except Error as error:
            log.debug(
                "the heartbeat of %s could not be recorded: %s", name, error
            )  # who needs the database says so
        finally:
            connection.close()
        if stop.wait(EVERY_SECONDS):
            break
    try:
        Service.objects.filter(host=host, pid=pid).delete()
    except Error as error:
        log.debug("the exit of %s could not be recorded: %s", name, error)
    finally:
        connection.close()


def _delete_predecessors(host: str) -> None:
    """Those of this machine and home that were killed: started again, they are no longer missed."""
    for service in Service.objects.filter(host=host, home=str(settings.HOME)):
        try:
            os.kill(service.pid, 0)
        except ProcessLookupError:
            service.delete()
        except PermissionError:
            continue
