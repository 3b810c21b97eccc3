"""What kombu's SQLAlchemy transport (the embedded broker) does not do for itself; idle on other brokers."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
from django.conf import settings

if TYPE_CHECKING:
    from celery import Celery

QUEUES = ("default", "gpu")
_LOCK = 7_310_001  # an advisory lock of the broker's database
_HAS_TABLES = "SELECT count(to_regclass(name)) = 2 FROM unnest(ARRAY['kombu_message', 'kombu_queue']) AS name"
_adopted = {"url": ""}


def celery() -> "Celery":
    """The app that sends messages. Imported at the first call: Celery takes longer than most commands."""
    from celery import current_app

    from apps.core.jobs import celery_app

    assert celery_app.app  # makes itself the current one when it is imported
    if url := _adopted["url"]:
        current_app.conf.broker_url = url
    app: Celery = current_app._get_current_object()
    return app


def adopt(url: str) -> None:
    """Let this process send to a broker that was started after the settings were read."""
    settings.CELERY_BROKER_URL = _adopted["url"] = url


def is_embedded(url: str) -> bool:
    return urlsplit(url).scheme.startswith(("sqla+", "sqlalchemy+"))


def prepare(url: str = "") -> None:
    """Make the broker's tables and queues: first senders that race to make them fail.

    url: of a role that may make tables, where the application's may not.
    """
    url = url or settings.CELERY_BROKER_URL
    if not is_embedded(url) or _is_prepared(url):
        return
    from kombu import Connection

    from apps.core.jobs import celery_app

    assert celery_app.app  # names the transport
    with psycopg.connect(database_url(url), autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))  # released with the connection
        with Connection(url) as connection, connection.channel() as channel:
            for queue in QUEUES:
                channel._new_queue(queue)
            channel.session.close()


def _is_prepared(url: str) -> bool:
    with psycopg.connect(database_url(url), autocommit=True) as db:
        tables = db.execute(_HAS_TABLES).fetchone()
        if tables is None or not tables[0]:
            return False
        return {name for (name,) in db.execute("SELECT name FROM kombu_queue")} >= set(QUEUES)


def delete_delivered() -> int:
    """Remove messages already handed to a worker, which the transport keeps forever. Returns how many."""
    url = settings.CELERY_BROKER_URL
    if not is_embedded(url):
        return 0
    with psycopg.connect(database_url(url)) as db:
        return db.execute("DELETE FROM kombu_message WHERE NOT visible").rowcount


def database_url(url: str) -> str:
    """The broker's database, as psycopg takes it."""
    scheme, rest = url.split("://", 1)
    return f"{scheme.split('+')[1]}://{rest}"
