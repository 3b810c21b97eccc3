"""The Celery app: tasks come from the `tasks` module of each app, settings from Django's."""

from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_ready, worker_shutting_down

from apps.core.jobs import broker, shutdown
from apps.core.processes import readiness

assert broker.QUEUES  # imported before a connection is made: it names the transport
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
