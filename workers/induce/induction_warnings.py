"""What the reader of an induction should know: about its comments, and about what its metrics can tell."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from workers.induce.comment_points import MAX_POINTS, CommentPoint
from workers.induce.grounding import Evidence
from workers.induce.induction_files import Aspect, Comment
from workers.induce.metric_classifier import InducedMetrics
from workers.induce.metric_names import content_words
from workers.induce.side_classifier import mentioned_sides
from workers.induce.step_features import DoubleArray

_LONG_COMMENT = 20_000  # characters from which there is a warning
_MIN_CONTENT_WORDS = 2  # of a point that names a behaviour
_MAX_GENERAL_SHARE = 1 / 3  # of points that name none
_DRAWS = 1000  # bootstrap samples of trajectories


def warn_one_sided(aspects: Sequence[Aspect]) -> list[str]:
    """A warning where all points have one sign."""
    signs = Counter(aspect.sign for aspect in aspects)
    return [
        f"Every point {verb}, so no metric knows what {missing} looks like. Ask for the other side too."
        for sign, verb, missing in ((1, "praises", "bad"), (-1, "blames", "good"))
        if signs[sign] == len(aspects)
    ]


def warn_of_comments(comments: Sequence[Comment], points: Sequence[CommentPoint]) -> list[str]:
    found = []
    unsigned = sum(not point.sign for point in points)
    if unsigned:
        found.append(
            f"{unsigned} of {len(points)} points neither praise nor blame and were left out; a sign given with the "
            "comment settles it."
        )
    foreign = sum(not _reads_as_english(comment.text) for comment in comments)
    if foreign:
        found.append(
            f"{foreign} of {len(comments)} comments do not read as English, which is all the embedded engine knows: "
            "what it makes of them is not to be relied on."
        )
    general = [point.text for point in points if len(content_words(point.text)) < _MIN_CONTENT_WORDS]
    if len(general) > _MAX_GENERAL_SHARE * len(points):
        found.append(
            f"{len(general)} of {len(points)} points do not name what the agent did (“{min(general, key=len)}”), so "
            "metrics cannot distinguish them. Ask annotators to describe the behaviour."
        )
    counts = Counter(point.comment.id for point in points)
    found += [
        f"Comment {comment.id} has {len(comment.text):,} characters; at most {MAX_POINTS} points of it were read."
        for comment in comments
        if len(comment.text) > _LONG_COMMENT or counts[comment.id] == MAX_POINTS
    ]
    return found


def warn_of_metrics(evidence: Evidence, induced: InducedMetrics, names: Sequence[str]) -> list[str]:
    """names: of the metrics."""
    found = [
        f"“{names[place]}” has the same verdict on nearly all trajectories that were commented on, or applies to none "
        "of them: it does not distinguish trajectories, and the figures below do not count it."
        for place in sorted(induced.refused)
    ]
    low = information_interval(evidence, induced)[0]
    if low <= 0:
        found.append(
            "The comments say little about these trajectories: on tasks that are left out, verdicts predict what a "
            "comment mentions no better than how often each metric is mentioned. Ask for comments on single steps, "
            "or on more trajectories."
        )
    return found


def information_interval(evidence: Evidence, induced: InducedMetrics) -> tuple[float, float]:
    """95 % interval, over trajectories, of the log-likelihood that verdicts add to the sides' frequencies.

    In nats for each trajectory that was commented on: of whether each side is mentioned, each task judged without its
    own comments.
    """
    sides = induced.clusters.sides
    rows = np.concatenate([side.rows for side in sides])
    commented = np.unique(evidence.trajectory[rows])
    mentioned = mentioned_sides(evidence, sides)[commented]
    probabilities = induced.classifier.probabilities(evidence.steps, evidence.tasks)[commented]
    usual = (mentioned.sum(axis=0) + 1) / (len(commented) + 2)
    gains = (_log_likelihood(mentioned, probabilities) - _log_likelihood(mentioned, usual)).sum(axis=1)
    draws = np.random.default_rng(0).integers(len(gains), size=(_DRAWS, len(gains)))
    low, high = np.quantile(gains[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _log_likelihood(mentioned: NDArray[np.bool_], probabilities: DoubleArray) -> DoubleArray:
    found: DoubleArray = np.log(np.where(mentioned, probabilities, 1 - probabilities) + 1e-12)
    return found


def _reads_as_english(text: str) -> bool:
    """A short text is too little to decide; a longer one has some of the commonest words."""
    words = [word.strip(".,;:!?()\"'").casefold() for word in text.split()]
    letters = sum(letter.isalpha() for letter in text)
    if letters and sum(letter.isascii() and letter.isalpha() for letter in text) < 0.7 * letters:
        return False
    return len(words) < 6 or any(word in ENGLISH_STOP_WORDS for word in words)
