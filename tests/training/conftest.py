import pytest

from apps.accounts.models import Project
from apps.datasets.models import DatasetVersion
from apps.training import runner
from tests.datasets.feedback import freeze, import_pairs, pair


@pytest.fixture(autouse=True)
def home(own_home: None) -> None:
    """Run directories and models are named after rows, whose numbers come again."""


@pytest.fixture
def dataset_version(project: Project) -> DatasetVersion:
    import_pairs(project, [pair(f"task-{n}") for n in range(12)])
    return freeze(project)


@pytest.fixture
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CHILD", "tests.training.fake_child")
    monkeypatch.setattr(runner, "TICK", 0.02)
    monkeypatch.setattr(runner, "heartbeat_seconds", lambda: 0.05)
