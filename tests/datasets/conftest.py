import pytest

from apps.accounts.models import Project, User
from tests.datasets.feedback import import_pairs, member, pair


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="desk", name="Desk")


@pytest.fixture
def judged(project: Project) -> Project:
    """Twelve tasks, a comparison each."""
    import_pairs(project, [pair(f"task-{n}") for n in range(12)])
    return project


@pytest.fixture
def rose(project: Project) -> User:
    return member(project, "rose@example.org", "researcher")


@pytest.fixture
def ann(project: Project) -> User:
    return member(project, "ann@example.org", "annotator")


@pytest.fixture
def stranger(db: None) -> User:
    return member(Project.objects.create(slug="elsewhere", name="Elsewhere"), "eve@example.org", "owner")
