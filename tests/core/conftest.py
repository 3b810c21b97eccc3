import pytest

from apps.accounts.models import Project
from apps.datasets.models import DatasetVersion


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="jobs", name="Jobs")


@pytest.fixture
def job(project: Project) -> DatasetVersion:
    """Any job will do: a dataset version is one with few fields."""
    return DatasetVersion.objects.create(project=project, name="first", version=1)
