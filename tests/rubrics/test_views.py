"""The rubric pages: written, changed, brought in and taken out as YAML."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation.services import create_campaign
from apps.rubrics import yaml_documents
from apps.rubrics.models import Criterion, Rubric
from apps.rubrics.rubric_templates import RUBRIC_TEMPLATES, RubricTemplate
from apps.rubrics.services import CriterionDraft, draft_of, save_rubric
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
    page = client.post(url, form("polite", "correct", known=1) | {"remove": "0"}).content.decode()
    assert 'value="polite"' not in page and 'value="correct"' in page
    assert not Rubric.objects.filter(version=2).exists()
    client.post(url, form("correct", known=1))
    newest = Rubric.objects.get(version=2)
    assert [entry.criterion.name for entry in newest.entries.all()] == ["correct"]
    assert [entry.criterion.name for entry in rubric.entries.all()] == ["polite"]
    page = client.get(reverse("rubrics:rubric-detail", args=[project.slug, rubric.pk])).content.decode()
    assert "not the newest" in page


def test_criteria_change_places_whatever_is_written_in_them(client: Client, project: Project) -> None:
    url = reverse("rubrics:rubric-create", args=[project.slug])
    data = form("polite", "correct", "") | {"criteria-0-points": "1 Never", "up": "1"}
    page = client.post(url, data).content.decode()
    assert page.index('value="correct"') < page.index('value="polite"') and "1 Never" in page
    page = client.post(url, form("polite", "correct") | {"down": "0"}).content.decode()
    assert page.index('value="correct"') < page.index('value="polite"')


def test_scores_have_names(client: Client, project: Project) -> None:
    url = reverse("rubrics:rubric-create", args=[project.slug])
    named = {"criteria-0-points": "1 = Never asks\n\n5 = Always = in each step"}
    assert client.post(url, form("asks") | named).status_code == 302
    criterion = Criterion.objects.get()
    assert criterion.named_points == [("1", "Never asks"), ("5", "Always = in each step")]
    rubric = Rubric.objects.get()
    page = client.get(reverse("rubrics:rubric-update", args=[project.slug, rubric.pk])).content.decode()
    assert "1 = Never asks" in page
    text = client.get(reverse("rubrics:rubric-yaml", args=[project.slug, rubric.pk])).content.decode()
    name, _, drafts = yaml_documents.read(text)
    assert (name, drafts) == ("Good", [draft_of(rubric.entries.get())])
    for wrong, message in (("Never", "such as 1 = Never asks"), ("7 = Never", "has no point 7")):
        refused = client.post(url, form("asks") | {"criteria-0-points": wrong})
        assert refused.status_code == 422 and message in refused.content.decode()


@pytest.mark.parametrize("template", RUBRIC_TEMPLATES, ids=lambda template: template.key)
def test_a_template_is_saved_as_it_stands(client: Client, project: Project, template: RubricTemplate) -> None:
    url = reverse("rubrics:rubric-create", args=[project.slug])
    page = client.get(f"{url}?template={template.key}").content.decode()
    assert all(draft.name in page for draft in template.criteria)
    save_rubric(project=project, name=template.name, criteria=template.criteria)


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
