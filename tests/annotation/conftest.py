"""A project with two tasks, people in it, and a campaign over it."""

import pytest

from apps.accounts.models import Project
from apps.annotation import services
from apps.annotation.models import Campaign
from apps.trajectories.models import Task


@pytest.fixture
def task(project: Project) -> Task:
    return Task.objects.create(project=project, external_id="refund", instruction="Refund order 17.")


@pytest.fixture
def campaign(project: Project) -> Campaign:
    return services.create_campaign(
        project=project, name="Which is better", feedback_types=["pairwise", "comment"]
    )
