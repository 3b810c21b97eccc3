import os
from pathlib import Path

import pytest

from tests import database


@pytest.fixture(scope="session")
def models(django_db_modify_db_settings: None) -> Path:
    """The two small reward models, and what they are measured by; trained once for all workers."""
    folder = Path(os.environ[database.RUN]) / "faults"
    folder.mkdir(exist_ok=True)
    return folder
