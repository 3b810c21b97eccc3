import logging
import os
import socket
import warnings
from typing import Any

from celery.platforms import SecurityWarning
from celery.utils.nodenames import nodename
from django.conf import settings
from django.core.management.base import CommandParser

from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.jobs import broker
from apps.core.processes.device_check import require_device
from apps.core.processes.heartbeats import record_heartbeats
from apps.core.registries import load_registrations

_CONCURRENCY = {"default": 2, "gpu": 1}


class Command(TouchstoneCommand):
    help = "Run a Celery worker: `default` imports, exports and counts; `gpu` trains and evaluates, one job at a time."
    store_access = "write"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", choices=broker.QUEUES)
        parser.add_argument(
            "--concurrency", type=int, default=None, help="concurrent jobs (default: 2, on gpu 1)"
        )

    def run(self, *, queue: str, concurrency: int | None) -> dict[str, Any]:
        # It is about pickled messages; ours are JSON, and carry nothing (CELERY_ACCEPT_CONTENT).
        warnings.filterwarnings("ignore", category=SecurityWarning)
        # Django's system checks import every page: 45 MB. `web`, `migrate` and `doctor` make them.
        os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
        broker.prepare()
        if queue == "gpu":
            require_device(
                "TOUCHSTONE_TRAINING_DEVICE", settings.TRAINING_DEVICE, processes=settings.TRAINING_PROCESSES
            )
        # All that jobs may need, before the first is taken and before other threads import.
        load_registrations()
        worker = broker.celery().Worker(
            queues=[queue],
            concurrency=concurrency or _CONCURRENCY[queue],
            # Threads: a process of billiard's pool that is killed while it waits takes the queue's lock with it, and
            # the worker never works again. What computes for long is a child process of ours anyway.
            pool_cls="threads",
            prefetch_multiplier=1,
            loglevel=logging.getLevelName(logging.getLogger().getEffectiveLevel()),
            hostname=nodename(queue, socket.gethostname()),
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )
        with record_heartbeats(queue):
            worker.start()
        if worker.exitcode:
            raise CommandFailed(
                f"The worker ended with status {worker.exitcode}.", result={"home": str(settings.HOME)}
            )
        return {}
