"""This process's database: one started after its settings were read, its owner's role, the planner's statistics."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.conf import settings
from django.db import connections
from django.db.models import Model

from apps.core.database import database_url, embedded_postgres, roles
from apps.core.environment import is_set
from apps.core.jobs import broker

OWNER_VARIABLE = "TOUCHSTONE_MIGRATION_DATABASE_URL"


def adopt(server: embedded_postgres.PostgresServer) -> None:
    """Let Django and Celery in this process use a server just started."""
    connections["default"].close()
    connections["default"].settings_dict.update(database_url.parse(server.url))
    if not is_set("CELERY_BROKER_URL"):
        broker.adopt(embedded_postgres.broker_url(server.home))


def owner_url() -> str:
    """Of the role that owns the tables; empty where the application's own does (yours, with one role)."""
    if settings.DATABASE_IS_EMBEDDED:
        return embedded_postgres.database_url(settings.HOME, role=roles.OWNER)
    url: str = settings.MIGRATION_DATABASE_URL
    return url


@contextmanager
def as_owner() -> Iterator[None]:
    """Let this process be the tables' owner for the block: for migrations and maintenance."""
    url, connection = owner_url(), connections["default"]
    if not url:
        yield
        return
    before = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(database_url.parse(url))
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict.update(before)


def grant_rights() -> None:
    """Give the application's role what it needs, after migrations. Nothing to do where it is the owner."""
    url = owner_url()
    if not url:
        return
    app = roles.APP if settings.DATABASE_IS_EMBEDDED else database_url.parse(settings.DATABASE_URL)["USER"]
    with psycopg.connect(url) as db:
        roles.grant(db, app=app, owner=db.info.user)
    if not is_set("CELERY_BROKER_URL"):
        broker.prepare(_owners_broker(url))


def _owners_broker(url: str) -> str:
    if settings.DATABASE_IS_EMBEDDED:
        return embedded_postgres.broker_url(settings.HOME, role=roles.OWNER)
    return embedded_postgres.broker_in(url)


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
    server = embedded_postgres.start(settings.HOME)
    try:
        adopt(server)
        yield
    finally:
        connections.close_all()
        server.stop()
