"""Feedback types that ask the criteria of a rubric, and campaigns in which there are none to ask."""

from apps.annotation.feedback_types import FEEDBACK_TYPES, AnyFeedbackType
from apps.annotation.models import Campaign


def types_with_criteria(campaign: Campaign) -> list[AnyFeedbackType]:
    kinds = [FEEDBACK_TYPES[name] for name in campaign.feedback_types]
    return [kind for kind in kinds if kind.needs_criteria(campaign.options.get(kind.name, {}))]


def types_without_rubric(campaign: Campaign) -> list[AnyFeedbackType]:
    """Those that ask nothing until the campaign has a rubric."""
    return types_with_criteria(campaign) if campaign.rubric_id is None else []
