"""The rubric pages: written, changed, brought in and taken out as YAML."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation.services import create_campaign
from apps.rubrics.models import Rubric
from apps.rubrics.services import CriterionDraft, save_rubric
from tests.factories import make_member


@pytest.fixture
def client(project: Project) -> Client:
    client = Client()
    client.force_login(make_member(project, "rose@example.org", "researcher"))
    return client


@pytest.fixture
def rubric(project: Project) -> Rubric:
    return save_rubric(project=project, name="Good", criteria=[CriterionDraft(name="polite", rank=2)])


def form(*names: str, known: int = 0, **more: str) -> dict[str, str]:
    data = {
        "name": "Good",
        "about": "",
        "criteria-TOTAL_FORMS": str(len(names)),
        "criteria-INITIAL_FORMS": str(known),
    }
    for n, name in enumerate(names):
        told = {
            "name": name,
            "definition": "",
            "scale_low": "1",
            "scale_high": "5",
            "weight": "1",
            "rank": "1",
        }
        data |= {f"criteria-{n}-{key}": value for key, value in told.items()}
    return data | more


def test_an_empty_list_says_what_to_do(client: Client, project: Project) -> None:
    page = client.get(reverse("rubrics:rubric-list", args=[project.slug]))
    assert "No rubrics yet" in page.content.decode()


def test_one_is_written_and_empty_rows_are_left_out(client: Client, project: Project) -> None:
    answer = client.post(reverse("rubrics:rubric-create", args=[project.slug]), form("polite", "", "correct"))
    rubric = Rubric.objects.get()
    assert answer.status_code == 302 and answer["Location"].endswith(f"/rubrics/{rubric.pk}/")
    assert [entry.criterion.name for entry in rubric.entries.all()] == ["polite", "correct"]
    assert "polite" in client.get(answer["Location"]).content.decode()


def test_another_row_keeps_what_was_written(client: Client, project: Project) -> None:
    page = client.post(reverse("rubrics:rubric-create", args=[project.slug]), form("polite", add="1"))
    assert 'value="polite"' in page.content.decode() and "criteria-1-name" in page.content.decode()
    assert not Rubric.objects.exists()


def test_what_is_wrong_is_said_on_the_page(client: Client, project: Project) -> None:
    page = client.post(reverse("rubrics:rubric-create", args=[project.slug]), form("polite", "polite"))
    assert page.status_code == 422 and "Duplicate criterion" in page.content.decode()


def test_a_criterion_is_taken_out_and_a_used_version_stays(
    client: Client, project: Project, rubric: Rubric
) -> None:
    create_campaign(project=project, name="Scores", feedback_types=["rubric"], rubric=rubric)
    url = reverse("rubrics:rubric-update", args=[project.slug, rubric.pk])
    assert 'value="polite"' in client.get(url).content.decode()
    data = form("polite", "correct", known=1) | {"criteria-0-DELETE": "on"}
    client.post(url, data)
    newest = Rubric.objects.get(version=2)
    assert [entry.criterion.name for entry in newest.entries.all()] == ["correct"]
    assert [entry.criterion.name for entry in rubric.entries.all()] == ["polite"]
    page = client.get(reverse("rubrics:rubric-detail", args=[project.slug, rubric.pk])).content.decode()
    assert "not the newest" in page


def test_yaml_out_and_in(client: Client, project: Project, rubric: Rubric) -> None:
    text = client.get(reverse("rubrics:rubric-yaml", args=[project.slug, rubric.pk])).content.decode()
    assert "name: polite" in text
    url = reverse("rubrics:rubric-import", args=[project.slug])
    assert client.post(url, {"text": text.replace("Good", "Other")}).status_code == 302
    assert Rubric.objects.get(name="Other").entries.get().rank == 2
    refused = client.post(url, {"text": "name: x\ncriteria: [{name: a, rank: b}]"})
    assert refused.status_code == 422 and "/criteria/0/rank" in refused.content.decode()


def test_a_stranger_and_an_annotator_stay_out(project: Project, rubric: Rubric, outsider: User) -> None:
    url = reverse("rubrics:rubric-detail", args=[project.slug, rubric.pk])
    for who, status in ((outsider, 404), (make_member(project, "ann@example.org", "annotator"), 403)):
        client = Client()
        client.force_login(who)
        assert client.get(url).status_code == status
