"""Workers of one test run share nothing on the disk."""

import os
from pathlib import Path

from django.conf import settings
from django.core.files.storage import storages


def test_a_worker_has_a_home_of_its_own() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    assert Path(os.environ["TOUCHSTONE_HOME"]) == settings.HOME
    assert settings.HOME.name.endswith(worker)
    assert Path(storages["artifacts"].path("x")) == settings.HOME / "artifacts" / "x"
