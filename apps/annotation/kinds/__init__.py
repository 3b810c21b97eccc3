"""Kinds of feedback: one module each, and this table. The order is that of the page."""

from apps.annotation.kinds.base import SIDES, Answer, Feedback, Judgement, Question, Shown
from apps.annotation.kinds.comment import COMMENT, Comment
from apps.annotation.kinds.pairwise import PAIRWISE, Preference
from apps.annotation.kinds.ranking import RANKING, Ranking
from apps.annotation.kinds.rating import RATING, Rating
from apps.annotation.kinds.rubric import RUBRIC, Score
from apps.annotation.kinds.step import STEP, Marking

KINDS: dict[str, Feedback] = {kind.name: kind for kind in (PAIRWISE, RANKING, RATING, RUBRIC, STEP, COMMENT)}

__all__ = [
    "KINDS",
    "SIDES",
    "Answer",
    "Comment",
    "Feedback",
    "Judgement",
    "Marking",
    "Preference",
    "Question",
    "Ranking",
    "Rating",
    "Score",
    "Shown",
]
