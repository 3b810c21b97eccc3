"""Campaigns: made, changed with a growing version, refused where wrong."""

from collections.abc import Callable

import pytest

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.models import Campaign
from apps.core.errors import Conflict, DomainError
from tests.annotation import rows


def test_the_version_grows_when_what_annotators_see_changes(campaign: Campaign) -> None:
    assert services.update_campaign(campaign=campaign, overlap=2).version == 1
    assert services.update_campaign(campaign=campaign, guidelines="Be kind.").version == 2
    assert services.update_campaign(campaign=campaign, guidelines="Be kind.").version == 2


def test_overlap_goes_to_the_items_there(campaign: Campaign) -> None:
    item = rows.pair(campaign, "one")
    services.update_campaign(campaign=campaign, overlap=4)
    item.refresh_from_db()
    assert item.overlap == 4


def test_kinds_stay_once_there_are_items(campaign: Campaign) -> None:
    assert services.update_campaign(campaign=campaign, feedback_types=["pairwise"]).feedback_types == [
        "pairwise"
    ]
    rows.pair(campaign, "one")
    with pytest.raises(Conflict, match="feedback types"):
        services.update_campaign(campaign=campaign, feedback_types=["comment"])


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"feedback_types": []}, "/feedback_types"),
        ({"feedback_types": ["telepathy"]}, "/feedback_types"),
        ({"overlap": 0}, "/overlap"),
        ({"lock_minutes": 0}, "/lock_minutes"),
        ({"name": "Which is better"}, "/name"),
    ],
)
def test_wrong_fields_are_named(campaign: Campaign, fields: dict[str, object], pointer: str) -> None:
    with pytest.raises(DomainError) as caught:
        services.create_campaign(
            project=campaign.project, **({"name": "New", "feedback_types": ["pairwise"]} | fields)
        )
    assert caught.value.pointer == pointer


def test_closing_and_opening(campaign: Campaign) -> None:
    assert services.close_campaign(campaign=campaign).state == Campaign.State.CLOSED
    assert services.open_campaign(campaign=campaign).state == Campaign.State.OPEN


def test_an_unknown_change_is_refused(campaign: Campaign, project: Project) -> None:
    with pytest.raises(DomainError, match="project"):
        services.update_campaign(campaign=campaign, project=project)


@pytest.mark.parametrize("close", [services.close_campaign, services.archive_campaign])
def test_a_closed_campaign_refuses_what_hands_out_work(
    campaign: Campaign, annotator: User, close: Callable[..., Campaign]
) -> None:
    item = rows.pair(campaign, "one")
    campaign = close(campaign=campaign)
    person = rows.annotator(campaign, annotator)
    for attempt in (
        lambda: services.start_pilot(campaign=campaign, items=1),
        lambda: services.assign_items(annotator=person, items=[item]),
        lambda: services.offer_skipped_items(campaign=campaign),
        lambda: rows.pair(campaign, "two"),
    ):
        with pytest.raises(Conflict, match="Reopen the campaign before you"):
            attempt()
    campaign = services.open_campaign(campaign=campaign)
    assert services.start_pilot(campaign=campaign, items=1) == 1
