"""Alerts become comparisons, first in the queue; judged ones are counted."""

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import Project, Role, User
from apps.accounts.services import create_project, create_user, set_member
from apps.annotation.models import Campaign, Item
from apps.annotation.services import add_items, annotator_for, assign_next_item, create_campaign
from apps.annotation.services.items import ItemSpec
from apps.core.errors import Conflict, DomainError
from apps.monitoring.measures import SampleRow
from apps.monitoring.models import Alert
from apps.retraining.follow_up import follow_up_alert, follow_up_campaigns, follow_up_uncertain
from apps.retraining.models import FollowUp
from apps.retraining.selectors import count_judgements
from apps.rewards.models import Endpoint, ScoreSample
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from apps.trajectories.services import store_trajectories
from tests.annotation.rows import submit
from workers.schema import Task
from workers.schema.messages import build_trajectory, from_messages


@pytest.fixture
def desk(db: None) -> Project:
    return create_project(slug="desk")


@pytest.fixture
def researcher(desk: Project) -> User:
    user, _ = create_user(email="rose@example.org", password="long enough for all")
    set_member(project=desk, user=user, role=Role.RESEARCHER, by=None)
    return user


@pytest.fixture
def endpoint(desk: Project) -> Endpoint:
    return Endpoint.objects.create(project=desk, name="reward", sample_share=1.0)


def messages(prompt: str, answer: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]


def kept(endpoint: Endpoint, prompt: str, answer: str, reward: float, *flags: str) -> ScoreSample:
    return ScoreSample.objects.create(
        endpoint=endpoint,
        version=1,
        caller="tsk_1",
        item={"messages": messages(prompt, answer)},
        result={"flags": list(flags), "reward": reward},
        reward=reward,
    )


def alert_about(endpoint: Endpoint, *samples: ScoreSample) -> Alert:
    numbers = {"value": 0.9, "baseline": 0.1, "limit": 0.3, "margin": 0.1, "count": 300}
    alert = Alert.objects.create(
        endpoint=endpoint,
        version=1,
        rule="length correlation",
        measure="length_correlation",
        detail="It is.",
        **numbers,
    )
    alert.samples.set(samples)
    return alert


def shown(item: Item) -> list[str]:
    """What the agent says last, by side."""
    keys = [place.trajectory_id for place in item.places.order_by("position")]
    found = load_trajectories(keys)
    return [found[key].steps[-1].text for key in keys]


def test_each_suspect_meets_the_answer_whose_reward_differs_most(endpoint, researcher) -> None:
    long = kept(endpoint, "Where is it?", "It comes. " * 40, 3.0)
    kept(endpoint, "Where is it?", "It comes on Monday.", -1.0)
    kept(endpoint, "Where is it?", "It comes soon.", 1.0)
    kept(endpoint, "Something else?", "No.", -9.0)
    asked = follow_up_alert(alert=alert_about(endpoint, long), campaign=None, count=10, by=researcher)
    campaign = asked.campaign
    assert (campaign.name, campaign.feedback_types, campaign.ordering) == (
        "Follow-up of reward",
        ["pairwise"],
        "priority",
    )
    (item,) = Item.objects.filter(pk__in=asked.items)
    assert shown(item) == ["It comes. " * 40, "It comes on Monday."]
    assert item.task.external_id.startswith("prompt-")
    with pytest.raises(Conflict, match="Follow-up of reward has all of these comparisons already"):
        follow_up_alert(alert=Alert.objects.get(), campaign=None, count=10, by=researcher)


def test_they_come_first_and_are_counted(endpoint, desk, researcher) -> None:
    campaign = create_campaign(
        project=desk,
        name="All",
        feedback_types=["pairwise"],
        ordering=Campaign.Ordering.PRIORITY,
        by=researcher,
    )
    for number in range(3):
        runs = [
            build_trajectory(from_messages(messages(f"old {number}", answer)), Task(id=f"t{number}"))
            for answer in "ab"
        ]
        keys = store_trajectories(project=desk, trajectories=runs, source_format="api")
        rows = Trajectory.objects.select_related("task").in_bulk(keys)
        add_items(campaign=campaign, items=[ItemSpec(trajectories=list(rows.values()), priority=5)])
    suspect = kept(endpoint, "new?", "a long one", 2.0)
    kept(endpoint, "new?", "a short one", 0.0)
    asked = follow_up_alert(alert=alert_about(endpoint, suspect), campaign=campaign, count=5, by=researcher)
    annotator, _ = create_user(email="ann@example.org", password="long enough for all")
    set_member(project=desk, user=annotator, role=Role.ANNOTATOR, by=None)
    held = assign_next_item(campaign=campaign, annotator=annotator_for(project=desk, user=annotator))
    assert held is not None and held.item_id == asked.items[0]
    assert asked.completed_count == 0
    submit(held, annotator, "b")
    assert asked.completed_count == 1


def test_what_people_said_stands_beside_the_reward(endpoint, desk, researcher) -> None:
    """Of three pairs people prefer what has less reward in some; each counts once, with the newer trajectory."""
    suspects = []
    for number, (high, low) in enumerate([(2.0, 0.0), (3.0, 1.0), (4.0, 2.5)]):
        kept(endpoint, f"new {number}?", "a short one", low)
        suspects.append(kept(endpoint, f"new {number}?", "a long one", high))
    asked = follow_up_alert(alert=alert_about(endpoint, *suspects), campaign=None, count=5, by=researcher)
    assert len(asked.items) == 3 and len(asked.samples) == 6
    annotator, _ = create_user(email="ann@example.org", password="long enough for all")
    set_member(project=desk, user=annotator, role=Role.ANNOTATOR, by=None)
    people, said = annotator_for(project=desk, user=annotator), []
    while held := assign_next_item(campaign=asked.campaign, annotator=people):
        said.append("b" if said else "a")  # what is long has more reward, and stands first
        submit(held, annotator, said[-1])
    samples = list(endpoint.samples.order_by("pk"))
    rows = [row_of(sample) for sample in samples]
    found = {row.pk: (row.judged, row.wrong) for row in count_judgements(endpoint, rows)}
    assert said == ["a", "b", "b"]
    assert sum(n for n, _ in found.values()) == 3 and sum(w for _, w in found.values()) == 2
    assert all(found[suspect.pk] in ((1, 0), (1, 1)) for suspect in suspects)  # the newer of the two
    some = [row for row in rows if row.pk != suspects[0].pk]
    assert sum(row.judged for row in count_judgements(endpoint, some)) == 2  # one side is out of the window


def row_of(sample: ScoreSample) -> SampleRow:
    return SampleRow(pk=sample.pk, policy_version="", reward=sample.reward, tokens=9, steps=1)


def test_a_run_of_the_same_task_where_no_other_answer_was_sampled(endpoint, desk, researcher) -> None:
    run = build_trajectory(from_messages(messages("Where?", "Here.")), Task(id="support-1"))
    store_trajectories(project=desk, trajectories=[run], source_format="api")
    alone = kept(endpoint, "Where?", "There. " * 9, 2.0)
    alone.item = {
        "trajectory": {
            "schema_version": "ATIF-v1.4",
            "session_id": "s",
            "agent": {"name": "a", "version": "1"},
            "steps": [
                {"step_id": 1, "source": "user", "message": "Where?"},
                {"step_id": 2, "source": "agent", "message": "There."},
            ],
            "extra": {"task": {"id": "support-1"}},
        }
    }
    alone.save()
    asked = follow_up_alert(alert=alert_about(endpoint, alone), campaign=None, count=5, by=researcher)
    assert len(asked.items) == 1


def test_nothing_to_compare_with_is_said(endpoint, researcher) -> None:
    alone = kept(endpoint, "alone?", "yes", 2.0)
    text = kept(endpoint, "x", "y", 2.0)
    text.item = {"text": "no prompt"}
    text.save()
    with pytest.raises(Conflict, match="nothing to compare"):
        follow_up_alert(alert=alert_about(endpoint, alone, text), campaign=None, count=5, by=researcher)
    assert not Campaign.objects.exists() and not FollowUp.objects.exists()
    with pytest.raises(DomainError):
        follow_up_uncertain(endpoint=endpoint, campaign=None, count=0, by=researcher)


def test_what_it_is_unsure_of(endpoint, researcher) -> None:
    for number in range(4):
        kept(endpoint, f"p{number}", "sure", 1.0)
        kept(endpoint, f"p{number}", "unsure", 0.5, *(["uncertain"] if number % 2 else []))
    follow_up_uncertain(endpoint=endpoint, campaign=None, count=20, by=researcher)
    items = Item.objects.filter(pk__in=FollowUp.objects.get().items)
    assert {tuple(sorted(shown(item))) for item in items} == {("sure", "unsure")}


def test_from_an_alerts_page(endpoint, researcher, client) -> None:
    suspect = kept(endpoint, "q", "long", 2.0)
    kept(endpoint, "q", "short", 0.0)
    alert = alert_about(endpoint, suspect)
    client.force_login(researcher)
    path = reverse("retraining:alert-follow-up-create", args=["desk", alert.pk])
    page = client.post(path, {"count": "5", "campaign": ""}, follow=True).content.decode()
    assert "Added 1 comparison to the front of Follow-up of reward." in page
    fragment = reverse("retraining:alert-follow-ups", args=["desk", alert.pk])
    assert f'hx-get="{fragment}"' in page
    assert "0 of 1 items annotated" in client.get(fragment).content.decode()
    (campaign,) = follow_up_campaigns(endpoint.project)
    again = client.post(path, {"count": "5", "campaign": str(campaign.pk)}, follow=True).content.decode()
    assert "Follow-up of reward has all of these comparisons already" in again


def test_a_campaign_of_another_project_is_no_choice(endpoint, researcher, client) -> None:
    other = create_campaign(project=create_project(slug="other"), name="Theirs", feedback_types=["pairwise"])
    alert = alert_about(endpoint, kept(endpoint, "q", "long", 2.0))
    client.force_login(researcher)
    path = reverse("retraining:alert-follow-up-create", args=["desk", alert.pk])
    assert (
        "No annotations were requested"
        in client.post(path, {"count": "5", "campaign": str(other.pk)}, follow=True).content.decode()
    )
    assert not FollowUp.objects.exists()
