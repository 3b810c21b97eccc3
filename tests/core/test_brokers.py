"""A nudge reaches a worker through each broker, and the worker does the job its row describes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from celery import Celery
from django.conf import settings
from django.db import connection
from kombu import Connection
from kombu.exceptions import OperationalError
from kombu.transport.sqlalchemy import Channel
from sqlalchemy.orm import close_all_sessions

from apps.accounts.models import Project
from apps.core.database import embedded_postgres
from apps.core.jobs import beat, broker, job_queue
from apps.datasets.models import DatasetVersion

# kombu 5.7 names a loader that SQLAlchemy 2.1 warns of, once per process, when the tables are first used.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
ROOT = Path(__file__).parents[2]
BROKERS = {
    "embedded": "",
    "redis": os.environ.get("TOUCHSTONE_TEST_REDIS", "redis://127.0.0.1:6379/9"),
    "rabbitmq": os.environ.get("TOUCHSTONE_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//"),
}


def _database_url() -> str:
    values = connection.settings_dict
    password = f":{values['PASSWORD']}" if values["PASSWORD"] else ""
    return f"postgresql://{values['USER']}{password}@{values['HOST']}:{values['PORT']}/{values['NAME']}"


def _owner_url() -> str:
    """Of the role that made the test database, and may make tables in it."""
    return f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{connection.settings_dict['NAME']}"


@contextmanager
def _sending_to(url: str) -> Iterator[None]:
    """Make `url` this process's broker, by an app of its own with the settings of ours."""
    ours, before = broker.celery(), os.environ["CELERY_BROKER_URL"]
    os.environ["CELERY_BROKER_URL"] = url  # Celery reads it too, and prefers it
    settings.CELERY_BROKER_URL = url
    app = Celery("elsewhere", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.set_current()
    try:
        yield
    finally:
        settings.CELERY_BROKER_URL = os.environ["CELERY_BROKER_URL"] = before
        ours.set_current()
        app.close()


@pytest.fixture
def embedded_broker(transactional_db: None) -> Iterator[str]:
    """kombu's tables next to ours, in the test database."""
    url = embedded_postgres.broker_in(_database_url())
    with _sending_to(url):
        broker.prepare(embedded_postgres.broker_in(_owner_url()))
        yield url
        close_all_sessions()
        for engine, _ in Channel._engines.values():  # kept: pooled channels go on using them
            engine.dispose()
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM kombu_message")


def _drop_tables() -> None:
    with psycopg.connect(_owner_url()) as db:
        db.execute("DROP TABLE IF EXISTS kombu_message, kombu_queue")
        db.execute("DROP SEQUENCE IF EXISTS message_id_sequence, queue_id_sequence")


def _visible() -> list[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT visible FROM kombu_message ORDER BY id")
        return [visible for (visible,) in cursor.fetchall()]


@pytest.mark.slow
def test_tables_are_made_once_however_many_make_them_at_once(embedded_broker: str) -> None:
    _drop_tables()
    script = (
        "import django; django.setup(); from apps.core.jobs.broker import prepare; "
        "prepare(); prepare(); print('made')"
    )
    environment = {
        **os.environ,
        "DATABASE_URL": _owner_url(),
        "CELERY_BROKER_URL": embedded_postgres.broker_in(_owner_url()),
        "DJANGO_SETTINGS_MODULE": "apps.config.settings",
    }

    def make(_: int) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(make, range(3))) == ["made\n"] * 3
    with psycopg.connect(_database_url()) as db:
        assert sorted(db.execute("SELECT name FROM kombu_queue")) == [("default",), ("gpu",)]


def test_delivered_rows_are_deleted_and_waiting_ones_kept(embedded_broker: str) -> None:
    for _ in range(3):
        job_queue.nudge("apps.datasets.tasks.any")
    with Connection(embedded_broker) as link, link.channel() as channel:
        channel._get("default")
        channel.session.close()
    assert _visible() == [False, True, True]
    assert broker.delete_delivered() == 1
    assert _visible() == [True, True]


@pytest.mark.django_db
def test_beat_nudges_each_eligible_row_up_to_a_few(embedded_broker: str) -> None:
    assert beat.nudge_eligible() == 0
    project = Project.objects.create(slug="nudged", name="Nudged")
    for version in range(1, 4):
        DatasetVersion.objects.create(project=project, name="waiting", version=version)
    job_queue.claim_next(DatasetVersion)  # running, and its heart beats: no one is told
    assert beat.nudge_eligible() == 2
    assert _visible() == [True, True]
    for version in range(4, 20):
        DatasetVersion.objects.create(project=project, name="waiting", version=version)
    assert beat.nudge_eligible() == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKERS)
def test_a_worker_does_a_queued_job(
    name: str, transactional_db: None, request: pytest.FixtureRequest
) -> None:
    url = BROKERS[name] or request.getfixturevalue("embedded_broker")
    _skip_unless_reachable(name, url)
    project = Project.objects.create(slug="worked", name="Worked")
    job = DatasetVersion.objects.create(project=project, name="nothing", version=1)
    environment = {**os.environ, "DATABASE_URL": _database_url(), "CELERY_BROKER_URL": url}
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "worker", "default", "--concurrency=1"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        with _sending_to(url):
            deadline = time.monotonic() + 180
            while not job.is_finished and time.monotonic() < deadline and worker.poll() is None:
                beat.nudge_eligible()
                time.sleep(0.5)  # as beat does; a nudge may be lost
                job.refresh_from_db()
    finally:
        worker.terminate()
        said, _ = worker.communicate(timeout=120)
    assert (job.state, job.attempt) == (job_queue.JobState.FAILED, 1), said  # there is no feedback to freeze
    assert job.error


def _skip_unless_reachable(name: str, url: str) -> None:
    if name == "embedded":
        return
    try:
        with Connection(url, connect_timeout=2) as link:
            link.ensure_connection(max_retries=1, timeout=3)
    except (OperationalError, OSError) as error:
        pytest.skip(f"no {name} at {url}: {error}; .ci/run starts one")


def test_a_broker_that_is_named_is_used() -> None:
    assert settings.CELERY_BROKER_URL == "memory://"
    conf = broker.celery().conf
    assert conf.worker_prefetch_multiplier == 1
    assert conf.accept_content == ["json"]
