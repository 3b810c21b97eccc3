from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from apps.accounts.models import Project
from apps.datasets.models import DatasetVersion
from apps.machines.services import create_join_token
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.machines.joined import JoinedProcess


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    """Run directories and models are named after rows, whose numbers come again."""


@dataclass
class JoinedMachines:
    """Processes of `touchstone join`, which end with the test."""

    folder: Path
    started: list[JoinedProcess] = field(default_factory=list)

    def start(self, url: str, *, home: str = "box", project: Project | None = None) -> JoinedProcess:
        """project: joined with a new token of it; without, as the home has joined before."""
        token = create_join_token(project=project, by=None)[1] if project is not None else ""
        process = JoinedProcess.start(self.folder / home, url, token)
        self.started.append(process)
        return process


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[JoinedMachines]:
    found = JoinedMachines(tmp_path)
    yield found
    for process in found.started:
        process.kill()


@pytest.fixture
def dataset_version(project: Project) -> DatasetVersion:
    import_pairs(project, [pair(f"task-{n}") for n in range(12)])
    return freeze(project)
