"""The Celery app: tasks come from the `tasks` module of each app, settings from Django's.

Imported where a task is defined and where a message is sent, by `broker.celery`, and not when Django starts: most
commands send none.
"""

from typing import Any

from celery import Celery, shared_task
from celery.signals import setup_logging, worker_ready, worker_shutting_down
from kombu.transport import TRANSPORT_ALIASES

from apps.core.jobs import shutdown
from apps.core.processes import readiness

__all__ = ["app", "shared_task"]
# Before a connection is made.
TRANSPORT_ALIASES["sqla"] = TRANSPORT_ALIASES["sqlalchemy"] = "apps.core.jobs.broker_transport:Transport"
app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def keep_djangos_logging(**kwargs: Any) -> None:
    """Connected, so that Celery sets up none of its own."""


@worker_ready.connect
def say_ready(**kwargs: Any) -> None:
    readiness.announce()


@worker_shutting_down.connect
def tell_jobs(**kwargs: Any) -> None:
    shutdown.ask()
