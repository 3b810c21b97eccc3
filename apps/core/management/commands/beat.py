import signal
import threading
from typing import Any

from apps.core.commands import TouchstoneCommand
from apps.core.jobs import beat, broker
from apps.core.processes import readiness
from apps.core.processes.heartbeats import record_heartbeats
from apps.core.registries import load_registrations


class Command(TouchstoneCommand):
    help = "Nudge waiting jobs, find orphans, clean up: a loop over the database. Any number may run."
    store_access = "read"

    def run(self) -> dict[str, Any]:
        stop = threading.Event()
        for sent in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sent, lambda *_: stop.set())
        broker.prepare()
        load_registrations()
        readiness.announce()
        self.say("beat is running")
        with record_heartbeats("beat"):
            beat.run(stop)
        return {}
