"""Ratings of single trajectories, as questions to a generative model."""

from collections.abc import Iterable
from dataclasses import dataclass

from workers.models.generative.verdicts import VerdictPrompt, VerdictRenderer
from workers.objectives.regression import place_on_scale
from workers.schema import FeedbackRecord, RatingRecord
from workers.schema.recipe import Recipe
from workers.train.generative.questions import comments_by_annotator


@dataclass(frozen=True, slots=True)
class RatedRun:
    """place: of the rating on its scale, 0 to 1; accepted is 1. reasons: token ids of what its annotator wrote."""

    prompt: VerdictPrompt
    place: float
    weight: float
    reasons: list[int]

    @property
    def longest(self) -> int:
        """Tokens, with the critique of an annotator."""
        return len(self.prompt.ids) + len(self.reasons)


def ratings_of(
    records: Iterable[FeedbackRecord], recipe: Recipe, renderer: VerdictRenderer
) -> list[RatedRun]:
    """Those of weight above 0. None without `rating_weight`, and none for a criterion: a rating is overall."""
    if not recipe.rating_weight or recipe.criterion is not None:
        return []
    kept = list(records)
    comments = comments_by_annotator(kept)
    return [
        RatedRun(
            renderer.render(record.trajectory),
            place_on_scale(record),
            record.weight,
            renderer.critique_ids(
                " ".join(dict.fromkeys(comments[record.annotator, record.trajectory.content_hash]))
            ),
        )
        for record in kept
        if isinstance(record, RatingRecord) and record.weight > 0
    ]


def share_of_epoch(count: int, place: int, steps: int) -> range:
    """Which of `count` shuffled ratings the step at this place of an epoch takes, so that an epoch takes each once."""
    return range(count * place // steps, count * (place + 1) // steps)
