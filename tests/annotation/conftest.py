"""A project with two tasks, people in it, and a campaign over it."""

import pytest

from apps.accounts.models import Membership, Project, User
from apps.annotation import services
from apps.annotation.models import Campaign
from apps.trajectories.models import Task
from tests.annotation import rows


@pytest.fixture
def ann(project: Project) -> User:
    return rows.member(project, "ann@example.org", "annotator")


@pytest.fixture
def ben(project: Project) -> User:
    return rows.member(project, "ben@example.org", "annotator")


@pytest.fixture
def rose(project: Project) -> User:
    return rows.member(project, "rose@example.org", "researcher")


@pytest.fixture
def stranger(db: None) -> User:
    other = Project.objects.create(slug="elsewhere", name="Elsewhere")
    return rows.member(other, "eve@example.org", "owner")


@pytest.fixture
def task(project: Project) -> Task:
    return Task.objects.create(project=project, external_id="refund", instruction="Refund order 17.")


@pytest.fixture
def campaign(project: Project) -> Campaign:
    return services.create_campaign(
        project=project, name="Which is better", feedback_types=["pairwise", "comment"]
    )


__all__ = ["Membership"]
