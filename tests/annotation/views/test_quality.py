"""The quality page and the items behind it; golden figures of PandaLM on the page."""

from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation.agreement import agreement
from apps.annotation.feedback.services import import_feedback
from apps.annotation.models import Campaign, Item
from tests.annotation import rows
from tests.annotation.feedback.test_kinds import SCORE, load
from tests.annotation.feedback.test_out import PAIR
from tests.factories import make_member


def url(name: str, *args: object) -> str:
    return reverse(f"annotation:{name}", args=["desk", *args])


@pytest.fixture
def reviewer(client: Client, project: Project) -> Client:
    client.force_login(make_member(project, "vera@example.org", "reviewer"))
    return client


def test_nothing_judged_says_so(reviewer: Client, campaign: Campaign) -> None:
    assert "No annotations yet" in reviewer.get(url("campaign-quality", campaign.pk)).content.decode()
    assert "No annotated items yet" in reviewer.get(url("item-list", campaign.pk)).content.decode()


def test_from_a_figure_to_what_was_said(
    reviewer: Client, campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(overlap=2)
    campaign.refresh_from_db()
    for name in ("same", "apart"):
        rows.pair(campaign, name)
    for user, said in (
        (annotator, {"same": "a", "apart": "a"}),
        (other_annotator, {"same": "a", "apart": "b"}),
    ):
        for _ in said:
            held = rows.leased(campaign, user)
            rows.submit(held, user, said[held.item.task.external_id])
    page = reviewer.get(url("campaign-quality", campaign.pk)).content.decode()
    assert "1 disputed" in page and "ann@example.org and ben@example.org" in page
    listed = reviewer.get(url("item-list", campaign.pk), {"disputed": "1"}).content.decode()
    assert ">apart<" in listed and ">same<" not in listed
    by_ann = reviewer.get(url("item-list", campaign.pk), {"by": "ann@example.org"}).content.decode()
    assert ">apart<" in by_ann and ">same<" in by_ann
    assert "Annotated items" in reviewer.get(url("item-list", campaign.pk), {"by": "nobody"}).content.decode()
    item = Item.objects.get(task__external_id="apart")
    detail = reviewer.get(url("item-detail", item.pk)).content.decode()
    assert "A slightly better" in detail and "B slightly better" in detail


def test_only_columns_with_figures_are_shown(reviewer: Client, campaign: Campaign, annotator: User) -> None:
    columns = ("Chose the left", "Chose the longer", "Agrees with majority", "Gold items")
    rows.pair(campaign, "one")
    rows.submit(rows.leased(campaign, annotator), annotator)
    page = reviewer.get(url("campaign-quality", campaign.pk)).content.decode()
    assert [name for name in columns if name in page] == ["Chose the left", "Chose the longer"]
    assert load(campaign.project, "rubric", SCORE).created == 1
    imported = Campaign.objects.exclude(pk=campaign.pk).get()
    page = reviewer.get(url("campaign-quality", imported.pk)).content.decode()
    assert "Annotations</th>" in page and not [name for name in columns if name in page]


def test_golden_values_of_pandalm(reviewer: Client, project: Project, shared_data: Path) -> None:
    with (shared_data / "pandalm" / "testset-v1.json").open("rb") as stream:
        import_feedback(project=project, stream=stream, format="pandalm", by=None, campaign="PandaLM")
    page = reviewer.get(url("campaign-quality", Campaign.objects.get(name="PandaLM").pk)).content.decode()
    assert 'title="0.8642">0.86<' in page
    for kappa in ("0.852", "0.879", "0.862"):
        assert kappa in page
    assert "120 disputed" in page  # 879 of 999 unanimous


def test_wrong_method_and_no_such_campaign(reviewer: Client, campaign: Campaign) -> None:
    assert reviewer.post(url("campaign-quality", campaign.pk)).status_code == 405
    assert reviewer.get(url("campaign-quality", campaign.pk + 1)).status_code == 404
    assert reviewer.get(url("item-detail", 99)).status_code == 404


def test_alpha_stands_next_to_the_units_it_is_of(
    reviewer: Client, campaign: Campaign, annotator: User, other_annotator: User
) -> None:
    """Units with one annotation say nothing about agreement, and are not counted with those that do."""
    Campaign.objects.filter(pk=campaign.pk).update(overlap=2)
    campaign.refresh_from_db()
    for number in range(5):
        rows.pair(campaign, f"item-{number}")
    for user, count in ((annotator, 5), (other_annotator, 2)):
        for _ in range(count):
            rows.submit(rows.leased(campaign, user), user, "a")
    found = agreement(project=campaign.project)["kinds"]["pairwise"]
    assert (found["alpha"], found["items"], found["once"], found["annotators"]) == (1.0, 2, 3, 2)
    page = reviewer.get(url("campaign-quality", campaign.pk)).content.decode()
    assert '<td class="number" title="3 more with one annotation">2</td>' in page


def test_no_table_of_zeros_where_no_comparison_was_made(reviewer: Client, project: Project) -> None:
    for name in ("ann", "ben"):
        record = SCORE | {"annotator": name}
        assert load(project, "rubric", record).created == 1
    scored = Campaign.objects.get()
    page = reviewer.get(url("campaign-quality", scored.pk)).content.decode()
    assert "1 item with two or more annotators" in page
    assert "Pairwise confusion" not in page
    load(project, "pairs", PAIR, PAIR | {"annotator": "ben"})
    compared = Campaign.objects.exclude(pk=scored.pk).get()
    assert "Pairwise confusion" in reviewer.get(url("campaign-quality", compared.pk)).content.decode()
