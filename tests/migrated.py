"""Homes with a database that is migrated already, copied: a dozen tests start an installation.

That an empty home is migrated by `up` and `restore` is shown by tests/core/test_supervisor.py (an ordinary user's home)
and tests/core/test_roles.py.
"""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

from apps.core.database import embedded_postgres
from tests import database
from tests.ports import free_port

ROOT = Path(__file__).parents[1]


def fill_home(home: Path) -> None:
    """Give an empty home the database that a first start leaves. Outside of a test run it stays empty."""
    if database.RUN not in os.environ:
        return
    first = Path(os.environ[database.RUN]) / "migrated-home"
    with first.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.exists():
            _make(first)
    told = json.loads((first / "postgres.json").read_text())
    if not Path(told["data"]).is_relative_to(first):  # PostgreSQL's user may not enter it
        return
    subprocess.run(["cp", "-a", f"{first}/.", str(home)], check=True)
    data = home.resolve() / Path(told["data"]).relative_to(first)
    (home / "postgres.json").write_text(json.dumps(told | {"data": str(data), "port": free_port()}))


def _make(home: Path) -> None:
    fresh = home.with_name("migrated-home.new")
    server = embedded_postgres.start(fresh, durable=False)
    try:
        _migrate(fresh)
    finally:
        server.stop()
    told = json.loads((fresh / "postgres.json").read_text())
    data = told["data"].replace(str(fresh.resolve()), str(home.resolve()), 1)
    (fresh / "postgres.json").write_text(json.dumps(told | {"data": data}))
    fresh.rename(home)


def _migrate(home: Path) -> None:
    ours = ("DATABASE_URL", "CELERY_BROKER_URL", "DJANGO_SETTINGS_MODULE")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--no-input", "--verbosity=0"],
        cwd=ROOT, env=environment | {"TOUCHSTONE_HOME": str(home)}, check=True,
    )  # fmt: skip
