"""Workers of one test run share nothing on the disk."""

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.storage import storages

from tests import database


def test_a_worker_has_a_home_of_its_own(request: pytest.FixtureRequest) -> None:
    home = Path(os.environ["TOUCHSTONE_HOME"])
    assert home == settings.HOME
    if hasattr(request.config, "workerinput"):  # a fork
        assert (home.parent, home.name[:7]) == (Path(os.environ[database.RUN]), "worker-")
    assert Path(storages["artifacts"].path("x")) == settings.HOME / "artifacts" / "x"
    assert {settings.STATIC_ROOT.parent, settings.TENSORBOARD_DIR.parent} == {home}
