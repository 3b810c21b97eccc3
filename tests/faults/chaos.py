"""Faults drawn from a seed: the same seed gives the same faults at the same moments of a scenario."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import psycopg
from kombu import Connection
from kombu.exceptions import OperationalError

from tests.faults.stack import Stack

TARGETS = ("web", "rewards", "default", "gpu", "beat", "postgres", "backend", "training")


@dataclass(frozen=True)
class Fault:
    """at: seconds from the start. seconds: how long a pause, an absence or a hunger lasts."""

    at: float
    what: str
    target: str = ""
    seconds: float = 0.0
    which: int = 0

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:.1f} s: {self.what} {self.target}{lasting}".rstrip()


KINDS = {
    "kill": 8,
    "pause": 4,
    "terminate": 2,
    "supervisor": 1,
    "empty broker": 1,
    "nudge": 1,
    "second beat": 0.5,
}
KINDS |= {"starve": 1}
WIRES = {"cut": 3, "hang": 2}


def plan(seed: int, seconds: float, every: float = 3.0, *, outside: bool = False) -> list[Fault]:
    """Faults over `seconds`, one about `every` so many. outside: database and broker are reached by wires."""
    draw = random.Random(seed)
    targets = [name for name in TARGETS if not outside or name not in ("postgres", "backend")]
    kinds = KINDS | (WIRES if outside else {})
    found, at = [], 1.0
    while at < seconds:
        what = draw.choices(list(kinds), list(kinds.values()))[0]
        target, lasting = "", 0.0
        if what in ("kill", "pause", "terminate"):
            target = draw.choice(
                targets if what != "terminate" else ["web", "rewards", "default", "gpu", "beat"]
            )
            # Longer and shorter than a silent worker's job is left alone for.
            lasting = draw.choice([0.5, 1.5, 5.0]) if what == "pause" else 0.0
        elif what in WIRES:
            target, lasting = draw.choice(["database", "broker"]), draw.choice([0.5, 2.0, 5.0])
        elif what in ("supervisor", "starve"):
            lasting = draw.uniform(0.0, 3.0)
        found.append(Fault(at, what, target, lasting, draw.randrange(100)))
        at += draw.expovariate(1 / every)
    return found


def strike(stack: Stack, fault: Fault) -> None:
    """Do it. What the fault is aimed at may not be there; then nothing happens, as in life."""
    if fault.what == "kill":
        stack.signal(fault.target, signal.SIGKILL, fault.which)
    elif fault.what == "terminate":
        stack.signal(fault.target, signal.SIGTERM, fault.which)
    elif fault.what == "pause":
        if stack.signal(fault.target, signal.SIGSTOP, fault.which):
            time.sleep(fault.seconds)
            stack.wake()
    elif fault.what == "supervisor":
        stack.kill_supervisor()
        time.sleep(fault.seconds)
        stack.start(ready=False)
    elif fault.what in WIRES:
        wire = stack.wires[fault.target]
        (wire.cut if fault.what == "cut" else wire.hang)()
        time.sleep(fault.seconds)
        wire.mend()
    elif fault.what == "empty broker":
        empty_broker(stack)
    elif fault.what == "nudge":
        nudge(stack, times=20)
    elif fault.what == "second beat":
        if "second beat" not in stack.extras:
            stack.add("second beat", "beat")
    elif fault.what == "starve":
        starve(fault.seconds)


def empty_broker(stack: Stack) -> None:
    """Every message is lost."""
    with contextlib.suppress(psycopg.Error, OperationalError, OSError):
        if (url := stack.environment.get("CELERY_BROKER_URL")) is not None:
            with Connection(url, connect_timeout=3) as link:
                for queue in ("default", "gpu"):
                    with contextlib.suppress(link.channel_errors):  # no such queue yet
                        link.SimpleQueue(queue).clear()
            return
        with psycopg.connect(broker_database(stack), autocommit=True, connect_timeout=3) as db:
            db.execute("DELETE FROM kombu_message")


def nudge(stack: Stack, times: int) -> None:
    """The same message again and again."""
    script = (
        "import django; django.setup()\n"
        "from apps.core.jobs.job_queue import JOB_TYPES, nudge\n"
        f"for job_type in JOB_TYPES * {times}: nudge(job_type.task)"
    )
    environment = stack.environment | {"DJANGO_SETTINGS_MODULE": "apps.config.settings"}
    subprocess.run([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL, check=False)


def starve(seconds: float) -> None:
    """Others take the processors."""
    greedy = "while True: pass"
    hogs = [subprocess.Popen([sys.executable, "-c", greedy]) for _ in range(2 * (os.cpu_count() or 1))]
    time.sleep(seconds)
    for hog in hogs:
        hog.kill()
        hog.wait()


def broker_database(stack: Stack) -> str:
    """Where kombu's tables are: a second database of an embedded server."""
    url = stack.database_url
    return url if "DATABASE_URL" in stack.environment else f"{url.rpartition('/')[0]}/touchstone_broker"
