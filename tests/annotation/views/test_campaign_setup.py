"""How a campaign begins: from a template with a preview of its questions, as a draft, as a duplicate."""

import html

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation import own_progress, services
from apps.annotation.labelling_templates import LABELLING_TEMPLATES, LabellingTemplate
from apps.annotation.models import Campaign
from apps.core.errors import Conflict
from apps.rubrics.models import Rubric
from tests.annotation import rows


@pytest.fixture
def manager(client: Client, researcher: User) -> Client:
    client.force_login(researcher)
    return client


def url(name: str, *args: object) -> str:
    return reverse(f"annotation:{name}", args=["desk", *args])


ITEMS = {"size": "2", "per_task": "0", "differ": "any", "partner": "matching", "seed": "0"}


@pytest.mark.parametrize("template", LABELLING_TEMPLATES, ids=lambda template: template.key)
def test_a_template_makes_a_campaign_as_it_stands(
    manager: Client, project: Project, template: LabellingTemplate
) -> None:
    address = f"{url('campaign-create')}?template={template.key}"
    page = manager.get(address)
    form = page.context["form"]
    fields = {field.html_name: field.value() for field in form if field.value() not in (None, False)}
    assert page.context["items_form"].initial["size"] == template.size
    preview = manager.get(url("question-preview"), fields | {"size": template.size}).content.decode()
    assert "needs a rubric" not in preview and "per item; this item" not in preview
    assert manager.post(address, fields | ITEMS).status_code == 302
    campaign = Campaign.objects.get()
    assert set(campaign.feedback_types) == set(template.feedback_types)
    assert (campaign.guidelines, campaign.options) == (template.guidelines, template.options)
    assert (campaign.rubric is not None) == bool(template.rubric)
    if campaign.rubric is not None:
        assert all(criterion.name in preview for criterion in campaign.rubric.criteria.all())
        assert manager.post(address, fields | ITEMS | {"name": "Again"}).status_code == 302
        assert Rubric.objects.count() == 1  # an equal rubric is used again


def test_the_preview_tells_what_does_not_fit(manager: Client, project: Project) -> None:
    page = manager.get(url("question-preview"), {"feedback_types": ["pairwise", "rubric"], "size": "1"})
    words = page.content.decode()
    assert "Comparison needs 2 trajectories per item; this item has 1." in words
    assert "Rubric scores needs a rubric; choose one." in words
    assert "Choose a feedback type" in manager.get(url("question-preview")).content.decode()


def test_a_draft_is_seen_by_managers_only_until_it_is_opened(
    manager: Client, project: Project, annotator: User
) -> None:
    fields = {
        "name": "Later", "feedback_types": ["pairwise"], "overlap": "1", "ordering": "random", "lock_minutes": "30",
        "gold_percent": "10", "gold_threshold": "70", "draft": "1",
    }  # fmt: skip
    assert manager.post(url("campaign-create"), fields | ITEMS).status_code == 302
    campaign = Campaign.objects.get()
    rows.pair(campaign, "one")
    person = services.annotator_for(project=project, user=annotator)
    assert campaign.state == "draft" and own_progress.my_campaigns(project, person) == []
    with pytest.raises(Conflict, match="draft"):
        services.assign_next_item(campaign=campaign, annotator=person)
    page = manager.get(url("campaign-detail", campaign.pk)).content.decode()
    assert "annotators do not see this campaign" in page and "Open campaign" in page
    manager.post(url("campaign-state", campaign.pk), {"move": "open"})
    campaign.refresh_from_db()
    assert services.assign_next_item(campaign=campaign, annotator=person) is not None


def test_a_duplicate_is_a_draft_with_the_settings_and_without_items(
    manager: Client, campaign: Campaign
) -> None:
    rows.pair(campaign, "one")
    services.update_campaign(campaign=campaign, overlap=3, guidelines="Short ones.")
    for name in ("Which is better (copy)", "Which is better (copy 2)"):
        answer = manager.post(url("campaign-duplicate", campaign.pk))
        copy = Campaign.objects.get(name=name)
        assert answer.headers["Location"] == url("campaign-update", copy.pk)
        assert (copy.state, copy.overlap, copy.guidelines) == ("draft", 3, "Short ones.")
        assert not copy.items.exists()


def test_closing_and_archiving_ask_first(manager: Client, campaign: Campaign) -> None:
    page = manager.get(url("campaign-detail", campaign.pk)).content.decode()
    assert "Close “Which is better”? Annotators get no more items." in page
    services.close_campaign(campaign=campaign)
    assert "Archive “Which is better”?" in manager.get(url("campaign-detail", campaign.pk)).content.decode()


def test_a_closed_campaign_offers_reopening_instead_of_work(manager: Client, campaign: Campaign) -> None:
    rows.pair(campaign, "one")
    offers = ("Start pilot", ">Assign<", "Add items", "Active learning")
    page = manager.get(url("campaign-detail", campaign.pk)).content.decode()
    assert all(words in page for words in offers)
    assert "Reopen" not in page
    services.close_campaign(campaign=campaign)
    page = manager.get(url("campaign-detail", campaign.pk)).content.decode()
    assert not [words for words in offers if words in page]
    assert "annotators get no items" in page
    manager.post(url("campaign-state", campaign.pk), {"move": "open"})
    assert "Start pilot" in manager.get(url("campaign-detail", campaign.pk)).content.decode()


def test_an_imported_campaign_without_a_rubric_offers_to_choose_one(
    manager: Client, campaign: Campaign
) -> None:
    rows.pair(campaign, "one")
    page = manager.get(url("campaign-preview", campaign.pk)).content.decode()
    assert "Choose a rubric" not in page
    Campaign.objects.filter(pk=campaign.pk).update(feedback_types=["rubric"], state="closed")
    page = manager.get(url("campaign-preview", campaign.pk)).content.decode()
    assert "Rubric scores: this campaign has no rubric, so nothing is asked." in page
    assert f'href="{url("campaign-update", campaign.pk)}">Choose a rubric' in page
    refused = manager.post(url("campaign-state", campaign.pk), {"move": "open"})
    assert refused.status_code == 409
    assert "Rubric scores needs a rubric: edit Which is better" in html.unescape(refused.content.decode())
    campaign.refresh_from_db()
    assert campaign.state == "closed"
