import pytest

from apps.accounts.models import Project
from apps.training.models import RewardModel


@pytest.fixture
def model(project: Project) -> RewardModel:
    """Registered; its artifact is not there."""
    return RewardModel.objects.create(
        project=project, name="quick", version=1, artifact="models/none", manifest={"aggregation": "value"}
    )


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
