"""Kinds of feedback: one module each, and this table. The order is that of the page."""

from apps.annotation.kinds.base import Feedback, Judgement, Shown
from apps.annotation.kinds.comment import COMMENT
from apps.annotation.kinds.pairwise import PAIRWISE

KINDS: dict[str, Feedback] = {kind.name: kind for kind in (PAIRWISE, COMMENT)}

__all__ = ["KINDS", "Feedback", "Judgement", "Shown"]
