"""Reviewers decide, researchers say what an item is for and who gets it; annotators see the answer to practice."""

import uuid

import pytest
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Membership, Project, User
from apps.annotation import services
from apps.annotation.models import Assignment, Campaign, Item, Participation
from apps.trajectories.models import Task
from tests.annotation import rows
from tests.factories import make_member


def url(name: str, *args: object) -> str:
    return reverse(f"annotation:{name}", args=["desk", *args])


@pytest.fixture
def annotator_client(client: Client, annotator: User) -> Client:
    client.force_login(annotator)
    return client


@pytest.fixture
def theirs(researcher: User) -> Client:
    client = Client()
    client.force_login(researcher)
    return client


@pytest.fixture
def disputed(project: Project, annotator: User, other_annotator: User) -> Item:
    campaign = services.create_campaign(
        project=project, name="Parted", feedback_types=["pairwise"], overlap=2
    )
    item = rows.pair(campaign, "one")
    for user, choice in ((annotator, "a"), (other_annotator, "b")):
        rows.submit(rows.leased(campaign, user), user, choice)
    return item


def decide(client: Client, item: Item, choice: str = "left-3") -> Assignment:
    client.post(url("item-adjudicate", item.pk))
    assignment = Assignment.objects.get(item=item, is_adjudication=True)
    form = {"idempotency_key": str(uuid.uuid4()), "choice": choice}
    client.post(url("assignment-submit", assignment.pk), form)
    return assignment


def said(response: object) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))  # type: ignore[attr-defined]


def test_the_next_dispute_is_decided_and_then_nothing_is_left(theirs: Client, disputed: Item) -> None:
    next_one = url("adjudication-next", disputed.campaign_id)
    begun = theirs.get(next_one, follow=True)
    page = begun.content.decode()
    assert (
        "You are adjudicating this item." in page
        and "ben@example.org" in page
        and "B slightly better" in page
    )
    assert "Skip this item" not in page
    assignment = Assignment.objects.get(is_adjudication=True)
    form = {"idempotency_key": str(uuid.uuid4()), "choice": "left-3"}
    after = theirs.post(url("assignment-submit", assignment.pk), form)
    assert after["Location"] == next_one
    assert theirs.get(next_one)["Location"].endswith("?disputed=1")
    listed = theirs.get(url("item-list", disputed.campaign_id), {"disputed": "1"}).content.decode()
    assert ">yes<" in listed
    assert "adjudication" in theirs.get(url("item-detail", disputed.pk)).content.decode()


def test_who_is_reviewer_no_more_decides_nothing(theirs: Client, disputed: Item, researcher: User) -> None:
    assignment = decide(theirs, disputed)
    Membership.objects.filter(user=researcher).update(role="annotator")
    assert theirs.get(url("assignment-detail", assignment.pk)).status_code == 403
    assert theirs.post(url("item-adjudicate", disputed.pk)).status_code == 403


def test_an_item_becomes_practice_and_its_answer_is_told(
    annotator_client: Client, theirs: Client, disputed: Item, other_annotator: User
) -> None:
    detail = theirs.get(url("item-detail", disputed.pk)).content.decode()
    assert "Adjudicate the item first." in detail
    assert theirs.post(url("item-purpose", disputed.pk), {"purpose": "gold"}).status_code == 409
    decide(theirs, disputed)
    told = {"purpose": "practice", "explanation": "Because <b>A</b> asks first."}
    assert "practice" in said(theirs.post(url("item-purpose", disputed.pk), told))
    assert theirs.post(url("item-purpose", disputed.pk), {"purpose": "fun"}).status_code == 400
    new = make_member(disputed.campaign.project, "dora@example.org", "annotator")
    client = Client()
    client.force_login(new)
    assert "1 practice item first" in client.get(url("campaign-list-own")).content.decode()
    client.get(url("campaign-work", disputed.campaign_id))
    held = Assignment.objects.get(annotator__user=new)
    form = {"idempotency_key": str(uuid.uuid4()), "choice": "right-1"}
    after = client.post(url("assignment-submit", held.pk), form, headers={"HX-Request": "true"})
    assert after["HX-Redirect"] == url("assignment-answer", held.pk)
    page = client.get(url("assignment-answer", held.pk)).content.decode()
    assert (
        "Different from the expected answer" in page
        and "A much better" in page
        and "&lt;b&gt;A&lt;/b&gt; asks first." in page
    )
    assert annotator_client.get(url("assignment-answer", held.pk)).status_code == 404


def test_an_example_is_shown_with_its_answer_and_judged_by_nobody(
    annotator_client: Client, theirs: Client, disputed: Item, annotator: User, other_annotator: User
) -> None:
    decide(theirs, disputed)
    assert annotator_client.get(url("example-detail", disputed.pk)).status_code == 404
    told = {"purpose": "example", "explanation": "Because <b>A</b> asks first."}
    assert "the item is an example" in said(theirs.post(url("item-purpose", disputed.pk), told)).lower()
    new = make_member(disputed.campaign.project, "dora@example.org", "annotator")
    client = Client()
    client.force_login(new)
    link = url("example-detail", disputed.pk)
    assert link in client.get(url("campaign-list-own")).content.decode()
    assert rows.lease(disputed.campaign, new) is None
    rows.pair(disputed.campaign, "another")
    assert link in client.get(url("campaign-work", disputed.campaign_id)).content.decode()
    page = client.get(link).content.decode()
    assert "A much better" in page
    assert "&lt;b&gt;A&lt;/b&gt; asks first." in page
    assert "Submit" not in page
    # What anyone but the adjudicator said of it stays between them and the researchers.
    assert other_annotator.email not in page
    assert not Assignment.objects.filter(item=disputed, annotator__user=new).exists()


def test_what_is_no_practice_has_no_answer(
    annotator_client: Client, campaign: Campaign, annotator: User
) -> None:
    rows.pair(campaign, "one")
    held = rows.leased(campaign, annotator)
    rows.submit(held, annotator)
    assert annotator_client.get(url("assignment-answer", held.pk))["Location"] == url(
        "assignment-detail", held.pk
    )


def test_items_are_given_and_taken_back(
    theirs: Client, campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    items = [rows.pair(campaign, name) for name in ("one", "two", "three")]
    member = Membership.objects.get(user=annotator).pk
    assert "Assigned the item to" in said(theirs.post(url("item-assign", items[0].pk), {"member": member}))
    assert "was not assigned" in said(theirs.post(url("item-assign", items[0].pk), {"member": member}))
    bulk = theirs.post(url("campaign-assign", campaign.pk), {"member": member, "items": "5"})
    assert "Assigned 2 items" in said(bulk)
    assert (
        theirs.post(url("campaign-assign", campaign.pk), {"member": member, "items": "0"}).status_code == 400
    )
    assert theirs.post(url("item-assign", items[0].pk), {"member": "99999"}).status_code == 400
    held = Assignment.objects.get(item=items[1])
    assert "assigned" in theirs.get(url("item-detail", items[1].pk)).content.decode()
    assert "Released the item" in said(theirs.post(url("assignment-release", held.pk)))
    assert theirs.post(url("assignment-release", held.pk)).status_code == 409
    assert rows.leased(campaign, other_annotator).item == items[1]


def test_a_pilot_begins_and_ends(theirs: Client, campaign: Campaign) -> None:
    assert theirs.post(url("campaign-pilot", campaign.pk), {"items": "2"}).status_code == 409
    for name in ("one", "two", "three"):
        rows.pair(campaign, name)
    assert "Pilot started with 2 items" in said(
        theirs.post(url("campaign-pilot", campaign.pk), {"items": "2"})
    )
    page = theirs.get(url("campaign-detail", campaign.pk)).content.decode()
    assert "0 of 2" in page and "Set the hourly pay" in page
    assert "is finished" in said(theirs.post(url("campaign-pilot", campaign.pk), {"end": "1"}))


def test_whoever_is_paused_is_told_and_can_be_let_go_on(
    annotator_client: Client, theirs: Client, campaign: Campaign, annotator: User
) -> None:
    rows.pair(campaign, "one")
    her = rows.annotator(campaign, annotator)
    Participation.objects.create(
        campaign=campaign, annotator=her, paused_at="2026-01-01T00:00Z", reason="1 of 5 were as expected."
    )
    assert (
        "You are paused in this campaign"
        in annotator_client.get(url("campaign-work", campaign.pk)).content.decode()
    )
    assert "You are paused." in annotator_client.get(url("campaign-list-own")).content.decode()
    assert "ann@example.org is paused" in theirs.get(url("campaign-detail", campaign.pk)).content.decode()
    assert theirs.post(url("campaign-resume", campaign.pk), {"annotator": "x"}).status_code == 404
    theirs.post(url("campaign-resume", campaign.pk), {"annotator": her.pk})
    assert "Do one." in annotator_client.get(url("campaign-work", campaign.pk)).content.decode()


def test_all_items_with_their_status(
    campaign: Campaign, task: Task, researcher: User, client: Client
) -> None:
    for key, claimed, completed in (("a", 0, 0), ("b", 1, 0), ("c", 2, 1), ("d", 2, 2)):
        Item.objects.create(
            campaign=campaign, task=task, key=key, overlap=2, claimed_count=claimed, completed_count=completed
        )
    Item.objects.create(campaign=campaign, task=task, key="e", overlap=0, purpose="gold")
    client.force_login(researcher)
    address = f"/p/desk/campaigns/{campaign.pk}/judged/"

    def keys(**query: str) -> str:
        return "".join(line.row.key for line in client.get(address, query).context["table"].body)

    assert keys(all="1") == "edcba" and keys() == ""
    found = {status: keys(all="1", status=status) for status in ("waiting", "assigned", "partly", "complete")}
    assert found == {"waiting": "a", "assigned": "b", "partly": "c", "complete": "d"}
    assert keys(all="1", kept_for="gold") == "e" and keys(all="1", status="lost") == ""
