"""A home and a database for the whole run: yours by DATABASE_URL, else an embedded PostgreSQL made here and removed.

This happens when the file is loaded: pytest imports the conftest files below this one, and with them models, before
any hook of ours could run.
"""

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import django
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.detection import is_hypothesis_test

from apps.core.database import embedded_postgres, roles
from tests import database, groups, source_code
from tests.worlds import home_settings

# How quickly examples are made says how busy the machine is, and nothing of what is tested.
hypothesis_settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
hypothesis_settings.load_profile("busy")

_MEMORY_FOR_HOMES = 8 * 2**30
_made: list[embedded_postgres.PostgresServer | Path] = []


def _memory_folder() -> Path | None:
    """A file system in memory, where there is one with room: of the database, and of what tests store."""
    folder = Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(folder, os.W_OK):
        return None
    return folder if shutil.disk_usage(folder).free >= _MEMORY_FOR_HOMES else None


def _prepare() -> None:
    # Tests run next to each other, and threads of torch that wait for one another spin: it took four times as long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Where it is set, each of the hundreds of processes of the tests compiles all modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    home = Path(tempfile.mkdtemp(prefix="touchstone-tests-", dir=_memory_folder()))
    home.chmod(0o755)  # PostgreSQL's user enters it when root runs the tests
    _made.append(home)
    os.environ["TOUCHSTONE_HOME"] = os.environ[database.RUN] = str(home)
    if not os.environ.get("DATABASE_URL"):
        server = embedded_postgres.start(home, durable=False)
        _made.insert(0, server)
        # Test databases are made and dropped by it; django_db_setup has tests run with less.
        os.environ["DATABASE_URL"] = server.connection.url(role=roles.SUPERUSER)
        os.environ[database.APP_PASSWORD] = server.connection.app_password
    os.environ["CELERY_BROKER_URL"] = "memory://"  # tests of nudges name a real broker
    os.environ["DJANGO_SETTINGS_MODULE"] = "apps.config.settings"
    django.setup()
    # A child that inherited it would have its settings read, and with them the home, before it is here.
    del os.environ["DJANGO_SETTINGS_MODULE"]


_prepare()
# Models can be imported from here on.
from django.contrib.staticfiles.handlers import StaticFilesHandler  # noqa: E402
from django.core.servers.basehttp import WSGIRequestHandler  # noqa: E402
from django.test import Client, override_settings  # noqa: E402
from django.test.testcases import LiveServerThread  # noqa: E402

from apps.accounts.models import Project, User  # noqa: E402
from tests.factories import make_member, make_outsider  # noqa: E402
from tests.forked_workers import Controller  # noqa: E402
from tests.live_server import PersistentThreadsServer, serve_static  # noqa: E402

# Of `live_server`, which writes a head in several pieces: each would wait 40 ms for the one before.
WSGIRequestHandler.disable_nagle_algorithm = True
LiveServerThread.server_class = PersistentThreadsServer
StaticFilesHandler.serve = serve_static  # type: ignore[method-assign]


def pytest_addoption(parser: pytest.Parser) -> None:
    names = ", ".join(groups.GROUPS)
    parser.addoption(
        "--group", default="", help=f"only tests of these groups, by commas: {names} (tests/groups.py)"
    )
    parser.addoption(
        "--workers", type=int, default=1, help="processes that run the tests (tests/forked_workers.py)"
    )


def _chosen(config: pytest.Config) -> set[str]:
    try:
        return groups.parse_groups(config.getoption("--group"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    _chosen(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    chosen = _chosen(config)
    inside = [collection_path]
    if collection_path.is_dir():  # whose conftest.py would be imported
        inside = list(collection_path.rglob("test_*.py"))
    elif not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    return True if chosen and not any(chosen & groups.groups_in(path) for path in inside) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test has the mark of its group; those of other groups than were asked for are left out."""
    chosen = _chosen(config)
    for item in items:
        item.add_marker(groups.group_of(item))
        if groups.is_run_twice(item):
            item.add_marker(pytest.mark.flaky(reruns=1))
    if chosen:
        left_out = [item for item in items if groups.group_of(item) not in chosen]
        config.hook.pytest_deselected(items=left_out)
        others = set(left_out)
        items[:] = [item for item in items if item not in others]
    if chosen and chosen <= {"slow", "long"}:
        items.sort(key=lambda item: groups.order_of(item.path))
    else:  # what mostly waits begins first, next to what computes
        items.sort(key=lambda item: (item.get_closest_marker("browser") is None, not groups.reads_code(item)))
    if wrong := groups.imports_torch_too_soon(chosen, sys.modules):
        raise pytest.UsageError(wrong)


def _prepare_worker(number: int) -> None:
    """A fork has a home of its own within that of the run."""
    home = Path(os.environ[database.RUN]) / f"worker-{number}"
    home.mkdir(exist_ok=True)
    os.environ["TOUCHSTONE_HOME"] = str(home)
    override_settings(**home_settings(home)).enable()


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Without `--workers`, or with one, pytest runs the tests in its own process."""
    count = session.config.getoption("--workers")
    if count < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    Controller(session, count, _prepare_worker).run()
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """The database of a test of processes is a new installation, which would refuse the store of the test before."""
    if "transactional_db" in getattr(item, "fixturenames", ()):
        (Path(os.environ["TOUCHSTONE_HOME"]) / "artifacts" / "installation" / "identity.json").unlink(
            missing_ok=True
        )


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if groups.reads_code(item) and not (nextitem and groups.reads_code(nextitem)):
        source_code.forget()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """The modules, and with them torch, stay for the whole run: the garbage collector need not look at them again.

    Nor at each 700 new objects: a request makes thousands, and it took 7 % of the time of tests of pages.
    """
    if any(is_hypothesis_test(getattr(item, "obj", None)) for item in session.items):
        # The constants of our 2,000 modules, which examples are made of: 5 s, else in each process.
        providers._get_local_constants()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_unconfigure() -> None:
    if _made:
        database.drop_template()
    while _made:
        made = _made.pop(0)
        if isinstance(made, Path):
            shutil.rmtree(made)
        else:
            made.stop()


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """The databases of the embedded server go with it."""
    return django_db_keepdb or database.APP_PASSWORD in os.environ


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, django_db_use_migrations: bool, django_db_blocker: Any
) -> None:
    if django_db_use_migrations:
        database.use_template(django_db_blocker.unblock())


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), database.with_application_rights():
        yield


@pytest.fixture(autouse=True, scope="session")
def fast_passwords() -> Iterator[None]:
    from django.test import override_settings

    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True, scope="session")
def shared_certificates() -> Iterator[None]:
    """Every client of httpx reads the certificates of the machine, 20 ms, and tests make hundreds."""
    from httpx._transports import default

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default, "create_ssl_context", cache(default.create_ssl_context))
        yield


@pytest.fixture(autouse=True)
def quiet_hearts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test within one transaction hides its rows from the heart's connection: a job of 5 s would seem lost."""
    marker = request.node.get_closest_marker("django_db")
    is_committed = (marker is not None and marker.kwargs.get("transaction")) or bool(
        {"transactional_db", "live_server", "forked_programs"} & set(request.fixturenames)
    )
    if not is_committed:
        monkeypatch.setattr("apps.core.jobs.job_queue.heartbeat_seconds", lambda: 3600.0)


@pytest.fixture
def forked_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children of the core are forks of this process (tests/forked.py), but for tests marked `real_children`."""
    from tests import forked

    if request.node.get_closest_marker("real_children") is None:
        monkeypatch.setattr("apps.core.processes.core_subprocess.start", forked.start)


@pytest.fixture(scope="module")
def forked_programs(django_db_blocker: Any) -> Iterator[None]:
    """Programs of ours that the module starts are forks of this process (tests/forked_programs.py)."""
    from tests import forked_programs

    with forked_programs.forking(django_db_blocker.unblock):
        yield


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
    for name, value in home_settings(tmp_path).items():
        setattr(settings, name, value)


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="desk", name="Desk")


@pytest.fixture
def researcher(project: Project) -> User:
    return make_member(project, "rose@example.org", "researcher")


@pytest.fixture
def annotator(project: Project) -> User:
    return make_member(project, "ann@example.org", "annotator")


@pytest.fixture
def other_annotator(project: Project) -> User:
    return make_member(project, "ben@example.org", "annotator")


@pytest.fixture
def outsider(db: None) -> User:
    return make_outsider()


@pytest.fixture
def researcher_client(researcher: User, client: Client) -> Client:
    """The browser of the researcher, signed in."""
    client.force_login(researcher)
    return client
