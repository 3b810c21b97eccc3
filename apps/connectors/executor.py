"""A run of a connector on a worker, from its claim to its end."""

import time
from contextlib import closing
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.connectors.models import Connector, ConnectorRun
from apps.connectors.pulling import Pull
from apps.connectors.pushing import Push
from apps.connectors.sources import kind_named
from apps.connectors.sources.peer_client import PeerRateLimited
from apps.connectors.sources.source import SourceContext
from apps.connectors.targets import TARGETS
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobHeartbeat, JobState
from apps.core.storage.encryption import decrypted
from workers.errors import RewardError

_LOOK_SECONDS = 1.0  # between looks at whether the run is to end, while it waits


def execute(run: ConnectorRun) -> None:
    """Raises ClaimLost when another attempt has it, Interrupted where the worker stops."""
    with job_queue.keep_heartbeat(run) as heartbeat:
        try:
            _execute(run, heartbeat)
        except job_queue.Cancelled:
            job_queue.finish(run, JobState.CANCELLED)
        except PeerRateLimited as error:
            again = timezone.now() + timedelta(seconds=error.retry_after)
            Connector.objects.filter(pk=run.connector_id, next_run_at__lt=again).update(next_run_at=again)
            job_queue.finish(run, JobState.FAILED, error=error.message)
        except (DomainError, RewardError) as error:
            job_queue.finish(run, JobState.FAILED, error=error.message)
        else:
            job_queue.finish(run, JobState.SUCCEEDED)


def _execute(run: ConnectorRun, heartbeat: JobHeartbeat) -> None:
    connector = Connector.objects.select_related("project").get(pk=run.connector_id)

    def pause(seconds: float) -> None:
        until = time.monotonic() + seconds
        heartbeat.check()
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            heartbeat.check()

    def report(progress: dict[str, Any]) -> None:
        heartbeat.progress = progress
        heartbeat.check()

    context = SourceContext(connector, decrypted(connector.secret), pause, timezone.now())
    if run.direction == ConnectorRun.Direction.PUSH:
        target = TARGETS[connector.kind](context)
        with closing(target):
            Push(run, target, context, report).execute()
        return
    source = kind_named(connector.kind).open(context)
    with closing(source):
        Pull(run, source, context, report).execute()
