"""The embedded database in a process whose settings were read before it ran, and what the planner knows of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from celery import current_app
from django.conf import settings
from django.db import connections
from django.db.models import Model

from apps.core import database_url, embedded
from apps.core.environment import is_set


def adopt(server: embedded.Server) -> None:
    """Let Django and Celery in this process use a server just started."""
    connections["default"].close()
    connections["default"].settings_dict.update(database_url.parse(server.url))
    if not is_set("CELERY_BROKER_URL"):
        current_app.conf.broker_url = settings.CELERY_BROKER_URL = embedded.broker_url(server.home)


def refresh_statistics(*tables: type[Model]) -> None:
    """ANALYZE before a read of many rows: a planner that takes grown tables for empty ones joins them for minutes."""
    names = [connections["default"].ops.quote_name(table._meta.db_table) for table in tables]
    with connections["default"].cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(names)}")


@contextmanager
def available() -> Iterator[None]:
    """The database, whether or not anything runs on this home: the embedded one is started for the block if need be."""
    if not settings.DATABASE_IS_EMBEDDED:
        yield
        return
    server = embedded.start(settings.HOME)
    try:
        adopt(server)
        yield
    finally:
        connections.close_all()
        server.stop()
