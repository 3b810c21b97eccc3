"""Who can be relied on: simulated annotators whose reliability is known come out in their order."""

import io
import json
import random

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation import services
from apps.annotation.feedback.services import import_feedback
from apps.annotation.models import Campaign
from apps.annotation.reliability import AnnotatorReliability, estimate_reliability
from apps.core.errors import DomainError
from tests.annotation import rows

RIGHT = {"careful": 0.95, "fair": 0.8, "guesser": 0.5}


@pytest.fixture
def simulated(project: Project) -> Campaign:
    """60 comparisons by three annotators, each right as often as RIGHT says."""
    draw = random.Random(0)
    lines = []
    for number in range(60):
        better = draw.choice("ab")
        for name, chance in RIGHT.items():
            says = better if draw.random() < chance else "ab".replace(better, "")
            lines.append(
                json.dumps(
                    {
                        "task": {"id": f"task-{number}"},
                        **{side: {"prompt": "Hello?", "response": f"{side} {number}"} for side in "ab"},
                        "choice": says,
                        "strength": 1,
                        "annotator": name,
                        "campaign": "Simulated",
                    }
                )
            )
    stream = io.BytesIO("\n".join(lines).encode())
    assert import_feedback(project=project, stream=stream, format="pairs", by=None).rejected == []
    return Campaign.objects.get(name="Simulated")


def test_they_come_out_in_their_order(simulated: Campaign) -> None:
    found = {reliability.name: reliability for reliability in estimate_reliability(simulated)}
    assert {name: reliability.answers for name, reliability in found.items()} == dict.fromkeys(RIGHT, 60)
    careful, fair, guesser = (found[name] for name in RIGHT)
    assert careful.accuracy > fair.accuracy > guesser.accuracy
    assert min(careful.competence, fair.competence) > 0.5 > guesser.competence
    assert all(0 <= reliability.accuracy <= 1 for reliability in found.values())
    assert careful.accuracy == pytest.approx(RIGHT["careful"], abs=0.1)


def test_the_page(
    campaign: Campaign, researcher: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = [AnnotatorReliability("careful", 60, 0.95, 0.9), AnnotatorReliability("guesser", 60, 0.5, 0.1)]
    monkeypatch.setattr("apps.annotation.views.quality.estimate_reliability", lambda campaign: people)
    client.force_login(researcher)
    url = reverse("annotation:campaign-reliability", args=["desk", campaign.pk])
    page = client.get(url).content.decode()
    assert page.index("careful") < page.index("guesser") and "95.0" in page and "<html" in page
    fragment = client.get(url, headers={"HX-Request": "true"}).content.decode()
    assert "guesser" in fragment and "<html" not in fragment


def test_the_quality_page_leads_there(simulated: Campaign, researcher: User, client: Client) -> None:
    client.force_login(researcher)
    page = client.get(reverse("annotation:campaign-quality", args=["desk", simulated.pk])).content.decode()
    assert reverse("annotation:campaign-reliability", args=["desk", simulated.pk]) in page


def test_one_person_alone_tells_nothing(campaign: Campaign, annotator: User) -> None:
    rows.pair(campaign, "one")
    rows.submit(rows.leased(campaign, annotator), annotator)
    with pytest.raises(DomainError, match="two or more annotators"):
        estimate_reliability(campaign)


def test_everybody_who_always_says_the_same_agrees(
    project: Project, annotator: User, other_annotator: User
) -> None:
    campaign = services.create_campaign(project=project, name="Both", feedback_types=["pairwise"], overlap=2)
    rows.pair(campaign, "one")
    for user in (annotator, other_annotator):
        rows.submit(rows.leased(campaign, user), user, "tie")
    assert [reliability.accuracy for reliability in estimate_reliability(campaign)] == [1, 1]
