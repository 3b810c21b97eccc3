import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import User
from apps.active_learning.models import SelectionPlan
from apps.annotation import services as annotation
from apps.annotation.models import Campaign
from tests.active_learning.conftest import chose
from tests.factories import make_member

pytestmark = pytest.mark.django_db

CURVE = {
    "points": [
        {"labels": 20, "accuracy": 0.6, "interval": [0.5, 0.7]},
        {"labels": 80, "accuracy": 0.7, "interval": [0.65, 0.75]},
    ],
    "best": 0.8,
    "drop": 0.9,
    "rate": 0.5,
    "wanted": 0.75,
    "needed": 324,
    "interval": [120, None],
}


@pytest.fixture
def page(client: Client, researcher: User) -> Client:
    client.force_login(researcher)
    return client


def _url(name: str, campaign: Campaign) -> str:
    return reverse(f"active_learning:{name}", args=[campaign.project.slug, campaign.pk])


def test_a_campaign_that_does_not_choose_yet(page: Client, campaign: Campaign) -> None:
    answer = page.get(_url("plan-detail", campaign))
    assert "No items ranked yet" in answer.content.decode()
    assert "Set up active learning" in page.get(_url("plan-summary", campaign)).content.decode()
    assert page.post(_url("plan-now", campaign)).status_code == 404


def test_it_is_set_by_the_form(page: Client, campaign: Campaign) -> None:
    said = {"strategy": "uncertainty", "annotations_between": "5", "target_accuracy": "82.5", "endpoint": ""}
    answer = page.post(_url("plan-detail", campaign), said, follow=True)
    plan = SelectionPlan.objects.get()
    assert (plan.strategy, plan.annotations_between, plan.target_accuracy) == ("uncertainty", 5, 0.825)
    assert "being ranked again" in answer.content.decode()
    assert 'value="82.5"' in answer.content.decode()


def test_a_mistake_is_said_where_it_is(page: Client, campaign: Campaign) -> None:
    answer = page.post(
        _url("plan-detail", campaign),
        {"strategy": "mix", "annotations_between": "5", "target_accuracy": "30"},
    )
    assert answer.status_code == 422 and "Enter a number above 50 and below 100." in answer.content.decode()
    assert not SelectionPlan.objects.exists()


def test_what_is_asked_next_and_why(page: Client, plan: SelectionPlan, campaign: Campaign) -> None:
    chose(plan, curve=CURVE)
    said = page.get(_url("plan-status", campaign)).content.decode()
    assert "An annotation is expected to be informative." in said
    assert said.count("<tr>") == 1 + campaign.items.count()
    assert "About 284 more comparisons for 75.0 % (80 % interval: 80 to no finite number)." in said
    assert '"kind": "line"' in said.replace("&quot;", '"')
    assert "About 284" in page.get(_url("plan-summary", campaign)).content.decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"needed": None}, "the curve ends at 80.0 %"),
        ({"needed": 30, "interval": [20, 40]}, "75.0 % is already reached"),
    ],
)
def test_what_it_says_of_the_wish(
    page: Client, plan: SelectionPlan, campaign: Campaign, change: dict[str, object], words: str
) -> None:
    chose(plan, curve=CURVE | change)
    assert words in page.get(_url("plan-status", campaign)).content.decode()


def test_without_a_curve_the_page_says_why(page: Client, plan: SelectionPlan, campaign: Campaign) -> None:
    chose(plan, curve=None, withheld=9, seen_unknown=True)
    said = page.get(_url("plan-status", campaign)).content.decode()
    assert "is unknown here" in said and "too few comparisons" not in said


def test_now(page: Client, plan: SelectionPlan, campaign: Campaign) -> None:
    chose(plan)
    assert "being ranked again" in page.post(_url("plan-now", campaign), follow=True).content.decode()
    assert "ranked already" in page.post(_url("plan-now", campaign), follow=True).content.decode()


def test_an_annotator_is_told_why_of_her_own_items(
    client: Client, plan: SelectionPlan, campaign: Campaign
) -> None:
    chose(plan)
    campaign.refresh_from_db()
    user = make_member(campaign.project, "ann@example.org", "annotator")
    annotator = annotation.annotator_for(project=campaign.project, user=user)
    mine = annotation.assign_next_item(campaign=campaign, annotator=annotator)
    assert mine is not None
    other = campaign.items.exclude(pk=mine.item_id).first()
    assert other is not None
    client.force_login(user)

    urls = [
        reverse("active_learning:item-reason", args=[campaign.project.slug, pk])
        for pk in (mine.item_id, other.pk)
    ]
    assert "expected to be informative" in client.get(urls[0]).content.decode()
    assert client.get(urls[1]).status_code == 404
    work = client.get(
        reverse("annotation:campaign-work", args=[campaign.project.slug, campaign.pk])
    ).content.decode()
    assert "Reason for this item" in work
