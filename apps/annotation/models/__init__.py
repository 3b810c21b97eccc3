"""Tables of annotation: campaigns and their work, and what annotators answered."""

from apps.annotation.models.campaigns import (
    VERIFIER,
    Annotator,
    Assignment,
    Campaign,
    Item,
    ItemTrajectory,
    Origin,
    Participation,
    Submission,
    is_by_judge,
    random_key,
)
from apps.annotation.models.feedback import (
    LABELS,
    PREFERENCE_CHOICES,
    Comment,
    Judgement,
    Marking,
    Preference,
    Ranking,
    Rating,
    Score,
)

__all__ = [
    "LABELS",
    "PREFERENCE_CHOICES",
    "VERIFIER",
    "Annotator",
    "Assignment",
    "Campaign",
    "Comment",
    "Item",
    "ItemTrajectory",
    "Judgement",
    "Marking",
    "Origin",
    "Participation",
    "Preference",
    "Ranking",
    "Rating",
    "Score",
    "Submission",
    "is_by_judge",
    "random_key",  # of migrations
]
