"""What a picture is compared with by a model of goal likeness, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from workers.errors import RewardError

PicturesRead = Literal["last", "each"]
DEFAULT_ALPHA = 0.5  # where there is a baseline
MOST_TEXT = 1000  # characters


@dataclass(frozen=True, slots=True)
class GoalTexts:
    """goal: what is to be seen where the task is done. baseline: what is seen otherwise, empty without one. alpha: how
    much only the direction from baseline to goal counts, 0 to 1. pictures: whether a trajectory is worth its last
    picture, or the mean of those after each agent step.
    """

    goal: str
    baseline: str = ""
    alpha: float = 0.0
    pictures: PicturesRead = "last"

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> "GoalTexts":
        """Of a manifest."""
        return cls(**values)

    def require_sense(self, pointer: str = "") -> None:
        """Raises RewardError with the pointer of the field that is wrong."""
        if not self.goal.strip():
            raise RewardError(
                "a model of text and pictures needs a goal: a text of what is to be seen where the task is done, such "
                "as 'a cart with its pole upright'. Set goal, and, to measure from it, baseline.",
                pointer=f"{pointer}/goal",
            )
        for name, text in (("goal", self.goal), ("baseline", self.baseline)):
            if len(text) > MOST_TEXT:
                raise RewardError(
                    f"{name} has {len(text)} characters; at most {MOST_TEXT} are read.",
                    pointer=f"{pointer}/{name}",
                )
        if self.baseline and self.baseline.strip() == self.goal.strip():
            raise RewardError(
                "baseline and goal are the same text, so there is no direction from one to the other; describe what is "
                "seen before the task is done, or leave baseline out.",
                pointer=f"{pointer}/baseline",
            )
        if not 0 <= self.alpha <= 1:
            raise RewardError(f"alpha = {self.alpha:g} is not between 0 and 1.", pointer=f"{pointer}/alpha")
        if self.alpha and not self.baseline:
            raise RewardError(
                "alpha projects on the direction from a baseline to the goal; set baseline, or leave alpha out.",
                pointer=f"{pointer}/alpha",
            )
        if self.pictures not in get_args(PicturesRead):
            raise RewardError(
                f"pictures = {self.pictures!r} is none of {', '.join(get_args(PicturesRead))}.",
                pointer=f"{pointer}/pictures",
            )

    def with_alpha(self, alpha: float) -> "GoalTexts":
        return replace(self, alpha=alpha)
