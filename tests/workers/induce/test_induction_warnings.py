"""What an induction warns of."""

import numpy as np
import pytest

from tests.workers.induce.synthetic_evidence import evidence
from workers.induce.comment_points import CommentPoint
from workers.induce.grounding import Evidence
from workers.induce.induction_files import Comment
from workers.induce.induction_warnings import ranking_interval, warn_of_comments, warn_of_metrics
from workers.induce.metric_classifier import InducedMetrics, induce_from_groups, induce_metrics


def by_behaviour(known: Evidence, truth: list[int]) -> InducedMetrics:
    return induce_from_groups(known, [np.flatnonzero(np.array(truth) == kind) for kind in sorted(set(truth))])


def shuffled(known: Evidence) -> Evidence:
    """Comments on trajectories that they say nothing about."""
    order = np.random.default_rng(1).permutation(len(known.aspects))
    names = ("actions", "observations", "flags", "trajectory", "step")
    return type(known)(
        **{name: getattr(known, name) for name in known.__slots__}
        | {name: getattr(known, name)[order] for name in names}
    )


def test_comments_that_say_nothing_of_the_steps() -> None:
    known, truth = evidence(trajectories=80)
    told = by_behaviour(known, truth)
    interval = ranking_interval(known, told)
    assert interval is not None and interval[0] > 0.75
    assert warn_of_metrics(known, told, list("abcd")) == []
    noise = shuffled(known)
    untold = by_behaviour(noise, truth)
    interval = ranking_interval(noise, untold)
    assert interval is not None and interval[0] <= 0.5
    warnings = " ".join(warn_of_metrics(noise, untold, list("abcd")))
    assert "The comments say little about these trajectories" in warnings


def test_clusters_made_of_the_steps_are_no_news_of_them() -> None:
    noise = shuffled(evidence(trajectories=80)[0])
    induced = induce_metrics(noise, np.arange(len(noise.aspects)), (6,))
    interval = ranking_interval(noise, induced)
    assert interval is not None and interval[0] <= 0.5


def test_a_metric_that_applies_to_all_is_named() -> None:
    known, truth = evidence(signs=(-1,), behaviours=2, trajectories=40)  # every trajectory shows both
    induced = by_behaviour(known, truth)
    found = warn_of_metrics(known, induced, ["slow", "rude"])
    assert [
        place for place in (0, 1) if f"“{('slow', 'rude')[place]}” has the same" in " ".join(found)
    ] == sorted(induced.refused)


@pytest.mark.parametrize(("general", "warned"), [(2, False), (6, True)])
def test_points_that_name_no_behaviour(general: int, warned: bool) -> None:
    texts = ["Bad."] * general + ["It never looked the order up before it answered."] * (9 - general)
    comments = [
        Comment(id=str(number), trajectory="1", text=text, sign=-1) for number, text in enumerate(texts)
    ]
    points = [CommentPoint(comment, comment.text, -1) for comment in comments]
    found = [warning for warning in warn_of_comments(comments, points) if "do not name what" in warning]
    assert bool(found) == warned
    assert not warned or found[0].startswith("6 of 9 points do not name what the agent did (“Bad.”)")
