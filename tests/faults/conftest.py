import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings: None) -> Path:
    """The two small reward models, and what they are measured by; trained once for all workers of xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "faults"
    folder.mkdir(exist_ok=True)
    return folder
