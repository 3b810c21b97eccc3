"""Who leans which way, who is quick, where people part: by hand on a few judgements."""

import pytest

from apps.accounts.models import User
from apps.annotation import services
from apps.annotation.agreement import agreement_by_type, current_agreement_values
from apps.annotation.models import Annotation, Assignment, Campaign
from apps.annotation.quality import (
    Proportion,
    QualityReport,
    disputed_items,
    measure_quality,
    read_alpha,
)
from tests.annotation import rows


@pytest.fixture
def judged(campaign: Campaign, annotator: User, other_annotator: User, researcher: User) -> Campaign:
    """Three items by three people: all one way, ben apart on the second, all apart on the third."""
    services.update_campaign(campaign=campaign, overlap=3)
    for name in ("one", "two", "three"):
        rows.pair(campaign, name)
    said = {
        annotator: {"one": "a", "two": "b", "three": "a"},
        other_annotator: {"one": "a", "two": "a", "three": "tie"},
        researcher: {"one": "a", "two": "b", "three": "b"},
    }
    for user, choices in said.items():
        for _ in choices:
            held = rows.leased(campaign, user)
            rows.submit(held, user, choices[held.item.task.external_id])
    return campaign


def figures(campaign: Campaign) -> QualityReport:
    answers = current_agreement_values(campaign.project, campaign.name)
    return measure_quality(campaign, answers, agreement_by_type(answers))


def test_share_has_wilsons_interval() -> None:
    low, high = Proportion(8, 10).interval
    assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))  # Wilson (1927)
    assert (
        Proportion(0, 0).interval == (0.0, 1.0)
        and not Proportion(5, 10).is_biased
        and Proportion(20, 20).is_biased
    )


def test_where_people_part(judged: Campaign) -> None:
    quality = figures(judged)
    names = {item.pk: item.task.external_id for item in judged.items.select_related("task")}
    assert (
        {names[pk] for pk in quality.disputed}
        == {"two", "three"}
        == {names[pk] for pk in disputed_items(judged)}
    )
    assert quality.annotated_twice == 3
    # one: a, a, a (6 ordered pairs); two: b, a, b; three: a, tie, b. Rows and columns: a, tie, b, both bad.
    assert quality.confusion == [[6, 1, 3, 0], [1, 0, 1, 0], [3, 1, 2, 0], [0, 0, 0, 0]]


def test_who_is_with_the_others(judged: Campaign) -> None:
    shares = {person.name: person.majority_agreement for person in figures(judged).people}
    # "one": all agree. "two": the others of ann and of rose have no majority, ben is against both. "three": none has.
    assert shares == {
        "ann@example.org": Proportion(1, 1),
        "ben@example.org": Proportion(1, 2),
        "rose@example.org": Proportion(1, 1),
    }


def test_the_side_that_was_shown_counts_not_the_stored_one(judged: Campaign) -> None:
    Assignment.objects.update(swapped=True)
    people = {person.name: person for person in figures(judged).people}
    assert people["ann@example.org"].left == Proportion(1, 3)  # of a, b, a with a on the right
    Assignment.objects.update(swapped=False)
    people = {person.name: person for person in figures(judged).people}
    assert people["ann@example.org"].left == Proportion(2, 3)


def test_the_longer_run_is_told_by_its_tokens(judged: Campaign) -> None:
    for item in judged.items.all():
        first, second = item.places.order_by("position")
        first.trajectory.token_count, second.trajectory.token_count = 50, 20
        first.trajectory.save()
        second.trajectory.save()
    quality = figures(judged)
    assert quality.chose_longer == Proportion(5, 8)


def test_whoever_is_much_quicker_is_marked(judged: Campaign) -> None:
    for name, seconds in (("ann@example.org", 2.0), ("ben@example.org", 30.0), ("rose@example.org", 40.0)):
        Annotation.objects.filter(assignment__annotator__name=name).update(active_seconds=seconds)
    assert [(person.name[:3], person.is_fast) for person in figures(judged).people] == [
        ("ann", True),
        ("ben", False),
        ("ros", False),
    ]


@pytest.mark.parametrize(
    ("alpha", "interval", "words"),
    [
        (None, None, "unknown"),
        (0.9, [0.82, 0.95], "single labels"),
        (0.85, [0.7, 0.9], "tentative"),
        (0.4, [0.32, 0.48], "many labels"),
        (0.3, [0.05, 0.5], "weak"),
        (0.1, [-0.1, 0.3], "not shown to be better than chance"),
        (0.9, None, "if that holds for more items"),
    ],
)
def test_what_an_alpha_is_good_for(alpha: float | None, interval: list[float] | None, words: str) -> None:
    assert words in read_alpha({"alpha": alpha, "interval": interval})
