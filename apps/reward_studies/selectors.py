"""Reads of reward studies."""

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.reward_studies.models import RewardStudy


def list_reward_studies(project: Project) -> QuerySet[RewardStudy]:
    """Newest first."""
    rows = RewardStudy.objects.filter(project=project).select_related("endpoint", "created_by", "project")
    return rows.order_by("-pk")


def get_reward_study(project: Project, pk: int) -> RewardStudy:
    """Raises NotFound."""
    study = list_reward_studies(project).filter(pk=pk).first()
    if study is None:
        raise NotFound(f"There is no reward study {pk} in this project.")
    return study
