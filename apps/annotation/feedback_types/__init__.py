"""Kinds of feedback: one module each, and this table. The order is that of the page."""

from apps.annotation.feedback_types.base import SIDES, Answer, AnyFeedbackType, FeedbackType, Question, Shown
from apps.annotation.feedback_types.comment import COMMENT
from apps.annotation.feedback_types.pairwise import PAIRWISE
from apps.annotation.feedback_types.ranking import RANKING
from apps.annotation.feedback_types.rating import RATING
from apps.annotation.feedback_types.rubric import RUBRIC
from apps.annotation.feedback_types.step import STEP

KINDS: dict[str, AnyFeedbackType] = {
    kind.name: kind for kind in (PAIRWISE, RANKING, RATING, RUBRIC, STEP, COMMENT)
}

__all__ = ["KINDS", "SIDES", "Answer", "AnyFeedbackType", "FeedbackType", "Question", "Shown"]
