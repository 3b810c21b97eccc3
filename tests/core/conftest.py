import pytest

from apps.accounts.models import Project
from apps.datasets.models import Snapshot


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="jobs", name="Jobs")


@pytest.fixture
def job(project: Project) -> Snapshot:
    """Any job will do: a snapshot is one with few fields."""
    return Snapshot.objects.create(project=project, name="first", version=1)
