"""The loop over the database that keeps everything going: nudges, clean-up, and what apps registered."""

import logging
import threading
import time

from django.db import close_old_connections, connection

from apps.core.database.outage import is_outage, renew_connections
from apps.core.jobs import broker, job_queue
from apps.core.jobs.periodic import PERIODIC, Periodic

log = logging.getLogger(__name__)

NUDGE_SECONDS = 5.0
CLEAN_SECONDS = 60.0


def run(stop: threading.Event) -> None:
    """Until `stop` is set. A round that fails is logged and tried again: the database may be restarting."""
    built_in = [
        Periodic("nudge eligible jobs", NUDGE_SECONDS, nudge_eligible),
        Periodic("delete delivered broker rows", CLEAN_SECONDS, broker.delete_delivered),
    ]
    last: dict[str, float] = {}
    while not stop.is_set():
        for each in (*built_in, *PERIODIC.values()):
            if time.monotonic() - last.get(each.name, float("-inf")) >= each.every_seconds:
                last[each.name] = time.monotonic()
                _run_one(each)
        stop.wait(0.5)
    connection.close()


def nudge_eligible() -> int:
    """Nudge every kind of job that has eligible rows, once per row up to a few. Returns how many nudges."""
    sent = 0
    for job_type in job_queue.JOB_TYPES:
        waiting = job_type.claimable()[: job_type.nudges].count()
        for _ in range(waiting):
            job_queue.nudge(job_type.task)
        sent += waiting
    return sent


def _run_one(each: Periodic) -> None:
    close_old_connections()
    try:
        each.function()
    except Exception as error:
        if is_outage(error):
            log.warning("beat could not %s; it tries again in %g s: %s", each.name, each.every_seconds, error)
            renew_connections(error)
            return
        log.exception("beat could not %s; it tries again in %g s", each.name, each.every_seconds)
