"""What kombu's SQLAlchemy transport (the embedded broker) does not do for itself; idle on other brokers."""

from urllib.parse import urlsplit

import psycopg
from celery import current_app
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES

QUEUES = ("default", "gpu")
TRANSPORT_ALIASES["sqla"] = TRANSPORT_ALIASES["sqlalchemy"] = "apps.core.jobs.broker_transport:Transport"
_LOCK = 7_310_001  # an advisory lock of the broker's database


def is_embedded(url: str) -> bool:
    return urlsplit(url).scheme.startswith(("sqla+", "sqlalchemy+"))


def prepare(url: str = "") -> None:
    """Make the broker's tables and queues: first senders that race to make them fail.

    url: of a role that may make tables, where the application's may not.
    """
    url = url or current_app.conf.broker_url
    if not is_embedded(url):
        return
    with psycopg.connect(database_url(url), autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))  # released with the connection
        with Connection(url) as connection, connection.channel() as channel:
            for queue in QUEUES:
                channel._new_queue(queue)
            channel.session.close()


def delete_delivered() -> int:
    """Remove messages already handed to a worker, which the transport keeps forever. Returns how many."""
    url = current_app.conf.broker_url
    if not is_embedded(url):
        return 0
    with psycopg.connect(database_url(url)) as db:
        return db.execute("DELETE FROM kombu_message WHERE NOT visible").rowcount


def database_url(url: str) -> str:
    """The broker's database, as psycopg takes it."""
    scheme, rest = url.split("://", 1)
    return f"{scheme.split('+')[1]}://{rest}"
