"""Who is there, who hangs, and who is missed no longer."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.core.models import Service
from apps.core.processes import heartbeats

pytestmark = pytest.mark.django_db(transaction=True)


def service(name: str, *, pid: int, silent: float = 0.0, host: str = "elsewhere", **fields: Any) -> Service:
    seen = timezone.now() - timedelta(seconds=silent)
    values = {"home": "/srv/home", "version": "1", "started_at": seen} | fields
    return Service.objects.create(name=name, host=host, pid=pid, seen_at=seen, **values)


def test_a_process_is_there_while_it_is(settings: Any) -> None:
    with heartbeats.record_heartbeats("web"):
        deadline = time.monotonic() + 10
        while not (found := heartbeats.process_statuses()) and time.monotonic() < deadline:
            time.sleep(0.02)
        (one,) = found
        assert (one.service.name, one.service.pid, one.service.home) == (
            "web",
            os.getpid(),
            str(settings.HOME),
        )
        assert not one.is_silent
    assert heartbeats.process_statuses() == []


def test_one_that_says_nothing_is_silent_and_after_an_hour_forgotten() -> None:
    service("web", pid=1)
    hangs = service("gpu", pid=2, silent=45)
    service("beat", pid=3, silent=4000)
    assert [status.service.name for status in heartbeats.process_statuses() if status.is_silent] == [
        "beat",
        "gpu",
    ]
    assert heartbeats.delete_stale() == 1
    assert [status.service for status in heartbeats.process_statuses() if status.is_silent] == [hangs]


def test_a_killed_one_of_this_home_is_not_missed_once_another_started(settings: Any) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine = {"home": str(settings.HOME), "host": "here"}
    service("gpu", pid=ended.pid, **mine)
    alive = service("beat", pid=os.getpid(), **mine)
    other = service("gpu", pid=ended.pid, host="there", home=str(settings.HOME))
    heartbeats._delete_predecessors("here")
    assert set(Service.objects.all()) == {alive, other}
