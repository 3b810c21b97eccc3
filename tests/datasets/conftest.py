import pytest

from apps.accounts.models import Project
from tests.datasets.feedback import import_pairs, pair


@pytest.fixture
def judged(project: Project) -> Project:
    """Twelve tasks, a comparison each."""
    import_pairs(project, [pair(f"task-{n}") for n in range(12)])
    return project
