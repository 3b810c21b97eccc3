"""A home and a database for the whole run: yours by DATABASE_URL, else an embedded PostgreSQL made here and removed.

This happens when the file is loaded: pytest imports the conftest files below this one, and with them models, before
any hook of ours could run.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import psycopg
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from apps.core.database import embedded_postgres, roles

# How quickly examples are made says how busy the machine is, and nothing of what is tested.
hypothesis_settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
hypothesis_settings.load_profile("busy")

_APP_PASSWORD = "TOUCHSTONE_TESTS_APP_PASSWORD"
_RUN = "TOUCHSTONE_TESTS_RUN"  # a folder that the processes of a run share
_made: list[embedded_postgres.Server | Path] = []


def _prepare() -> None:
    """Workers of xdist inherit the controller's environment, and have a home of their own within its."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    # Tests run beside each other, and threads of torch that wait for one another spin: it took four times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if worker is None:
        home = Path(tempfile.mkdtemp(prefix="touchstone-tests-"))
        home.chmod(0o755)  # PostgreSQL's user enters it when root runs the tests
        _made.append(home)
        os.environ["TOUCHSTONE_HOME"] = os.environ[_RUN] = str(home)
        if not os.environ.get("DATABASE_URL"):
            server = embedded_postgres.start(home, durable=False)
            _made.insert(0, server)
            # Test databases are made and dropped by it; django_db_setup has tests run with less.
            os.environ["DATABASE_URL"] = server.connection.url(role=roles.SUPERUSER)
            os.environ[_APP_PASSWORD] = server.connection.app_password
    else:
        home = Path(os.environ["TOUCHSTONE_HOME"]) / worker
        home.mkdir(exist_ok=True)
        os.environ["TOUCHSTONE_HOME"] = str(home)
    os.environ["CELERY_BROKER_URL"] = "memory://"  # tests of nudges name a real broker
    os.environ["DJANGO_SETTINGS_MODULE"] = "apps.config.settings"
    django.setup()
    # A worker that inherited it would have its settings read, and with them the home, before it is here.
    del os.environ["DJANGO_SETTINGS_MODULE"]


_prepare()
# Models can be imported from here on.
from django.test import Client  # noqa: E402

from apps.accounts.models import Project, User  # noqa: E402
from tests.datasets.feedback import member  # noqa: E402


def pytest_unconfigure() -> None:
    if _made:
        _drop_template()
    while _made:
        made = _made.pop(0)
        if isinstance(made, Path):
            shutil.rmtree(made)
        else:
            made.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, django_db_use_migrations: bool, django_db_blocker: Any
) -> None:
    """Migrates one database for all workers of xdist: the first makes it, and each has a copy of its own."""
    from django.db import connection

    if "PYTEST_XDIST_WORKER" not in os.environ or not django_db_use_migrations:
        return
    made = _template_mark()
    with made.open("a+") as mark, django_db_blocker.unblock():
        fcntl.flock(mark, fcntl.LOCK_EX)
        if not made.stat().st_size:
            name, own = connection.settings_dict["NAME"], connection.settings_dict["TEST"]["NAME"]
            connection.settings_dict["TEST"]["NAME"] = _template()
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            connection.close()
            connection.settings_dict["NAME"] = name
            connection.settings_dict["TEST"]["NAME"] = own
            mark.write(_template())
    connection.settings_dict["TEST"]["TEMPLATE"] = _template()


def _template() -> str:
    return f"template_{Path(os.environ[_RUN]).name.replace('-', '_')}"


def _template_mark() -> Path:
    return Path(os.environ[_RUN]) / "template-database"


def _drop_template() -> None:
    if _template_mark().exists():
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
            db.execute(f'DROP DATABASE IF EXISTS "{_template()}"')


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Tests have the application's rights, as far as the server is the embedded one: what needs more fails here."""
    from django.db import connection

    with django_db_blocker.unblock():
        url = f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{connection.settings_dict['NAME']}"
        with connection.cursor() as cursor:
            for table in roles.APPEND_ONLY:  # a test that commits ends by emptying all tables
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER audit_no_truncate")
        if _APP_PASSWORD not in os.environ:  # yours
            yield
            return
        with psycopg.connect(url) as db:
            roles.grant(db, app=roles.APP, owner=roles.SUPERUSER)
        before = dict(connection.settings_dict)
        connection.close()
        connection.settings_dict |= {"USER": roles.APP, "PASSWORD": os.environ[_APP_PASSWORD]}
        # On the class: where Playwright's loop runs, Django has another connection in this thread.
        operations = type(connection.ops)
        flush = operations.execute_sql_flush
        operations.execute_sql_flush = lambda _, statements: _as_superuser(url, statements)
        yield
        connection.close()
        connection.settings_dict.update(before)
        operations.execute_sql_flush = flush


def _as_superuser(url: str, statements: list[str]) -> None:
    with psycopg.connect(url) as db:
        for statement in statements:
            db.execute(statement)


@pytest.fixture(autouse=True, scope="session")
def fast_passwords() -> Iterator[None]:
    from django.test import override_settings

    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True)
def quiet_hearts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test within one transaction hides its rows from the heart's connection: a job of 5 s would seem lost."""
    marker = request.node.get_closest_marker("django_db")
    is_committed = (marker is not None and marker.kwargs.get("transaction")) or bool(
        {"transactional_db", "live_server"} & set(request.fixturenames)
    )
    if not is_committed:
        monkeypatch.setattr("apps.core.jobs.job_queue.heartbeat_seconds", lambda: 3600.0)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, by TOUCHSTONE_DATA; tests that need it are skipped in words where it is absent."""
    folder = Path(os.environ.get("TOUCHSTONE_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"needs the data sets in {folder} (TOUCHSTONE_DATA)")
    return folder


@pytest.fixture
def own_home(settings: Any, tmp_path: Path) -> None:
    """A home and an artifact store for one test: what is named after rows would meet the names of other tests."""
    settings.HOME = tmp_path
    store = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": tmp_path / "artifacts"},
    }
    settings.STORAGES = settings.STORAGES | {"artifacts": store}


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="desk", name="Desk")


@pytest.fixture
def rose(project: Project) -> User:
    return member(project, "rose@example.org", "researcher")


@pytest.fixture
def ann(project: Project) -> User:
    return member(project, "ann@example.org", "annotator")


@pytest.fixture
def stranger(db: None) -> User:
    return member(Project.objects.create(slug="elsewhere", name="Elsewhere"), "eve@example.org", "owner")


@pytest.fixture
def roses(rose: User, client: Client) -> Client:
    """The browser of rose, signed in."""
    client.force_login(rose)
    return client
