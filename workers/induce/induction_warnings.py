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
from workers.induce.step_features import IndexArray

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
    interval = ranking_interval(evidence, induced)
    if interval is not None and interval[0] <= 0.5:
        found.append(
            "The comments say little about these trajectories: for comments on other tasks, the steps do not show "
            "which trajectories will be mentioned with which metric. Verdicts follow how often each metric is "
            "mentioned. Ask for comments on single steps, or on more trajectories."
        )
    return found


def ranking_interval(evidence: Evidence, induced: InducedMetrics) -> tuple[float, float] | None:
    """95 % interval, over trajectories, of the probability that a trajectory whose comments express a side of a metric
    is ranked above one whose comments do not; 0.5 by chance. None where no comment expresses what another task's does.

    By words alone: clusters are made of steps too, so that the cluster of a point is no news of its step.
    """
    commented, expressed = _expressed_sides(evidence, induced)
    probabilities = induced.classifier.probabilities(evidence.steps, evidence.tasks)[commented]
    sums, counts = np.zeros(len(commented)), np.zeros(len(commented))
    for side in range(expressed.shape[1]):
        yes = expressed[:, side]
        if yes.any() and not yes.all():
            others = np.sort(probabilities[~yes, side])
            places = sum(others.searchsorted(probabilities[yes, side], at) for at in ("left", "right"))
            sums[yes] += places / (2 * len(others))
            counts[yes] += 1
    if not counts.any():
        return None
    draws = np.random.default_rng(0).integers(len(commented), size=(_DRAWS, len(commented)))
    drawn = counts[draws].sum(axis=1)
    means = sums[draws].sum(axis=1)[drawn > 0] / drawn[drawn > 0]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _expressed_sides(evidence: Evidence, induced: InducedMetrics) -> tuple[IndexArray, NDArray[np.bool_]]:
    """The trajectories with comments; [trajectories, sides], whether a point is similar to an example of another
    task."""
    clusters = induced.clusters
    rows = np.concatenate([side.rows for side in clusters.sides])
    signs = np.array([evidence.aspects[row].sign for row in rows])
    tasks = np.array([evidence.tasks[number] for number in evidence.trajectory])
    commented, place = np.unique(evidence.trajectory[rows], return_inverse=True)
    expressed = np.zeros((len(commented), len(clusters.sides)), dtype=bool)
    for number, side in enumerate(clusters.sides):
        is_similar = evidence.text[rows] @ side.vectors.T >= clusters.similarity
        is_similar &= tasks[rows][:, None] != tasks[side.examples][None]
        expressed[place[is_similar.any(axis=1) & (signs == side.sign)], number] = True
    return commented, expressed


def _reads_as_english(text: str) -> bool:
    """A short text is too little to decide; a longer one has some of the commonest words."""
    words = [word.strip(".,;:!?()\"'").casefold() for word in text.split()]
    letters = sum(letter.isalpha() for letter in text)
    if letters and sum(letter.isascii() and letter.isalpha() for letter in text) < 0.7 * letters:
        return False
    return len(words) < 6 or any(word in ENGLISH_STOP_WORDS for word in words)
