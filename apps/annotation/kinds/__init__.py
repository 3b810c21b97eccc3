"""Kinds of feedback: one module each, and this table. The order is that of the page."""

from apps.annotation.kinds.base import SIDES, Answer, AnyFeedbackType, FeedbackType, Question, Shown
from apps.annotation.kinds.comment import COMMENT
from apps.annotation.kinds.pairwise import PAIRWISE
from apps.annotation.kinds.ranking import RANKING
from apps.annotation.kinds.rating import RATING
from apps.annotation.kinds.rubric import RUBRIC
from apps.annotation.kinds.step import STEP

KINDS: dict[str, AnyFeedbackType] = {
    kind.name: kind for kind in (PAIRWISE, RANKING, RATING, RUBRIC, STEP, COMMENT)
}

__all__ = ["KINDS", "SIDES", "Answer", "AnyFeedbackType", "FeedbackType", "Question", "Shown"]
