"""The part of a page that makes fields of a filter, and the forms that offer it."""

import pytest
from django.test import Client

from apps.accounts.models import Project, Role, User
from apps.questions.forms import QuestionForm
from apps.trajectories.saved_views import create_view
from tests.factories import make_member
from tests.trajectories.conftest import record
from tests.trajectories.test_views import bring

URL = "/p/desk/trajectories/filter/"
FORMS = [
    "datasets/new/",
    "datasets/exports/",
    "datasets/trajectories/export/",
    "datasets/trajectories/delete/",
    "bulk/new/",
    "clusters/",
    "reward-studies/create/",
]


@pytest.fixture
def desk(project: Project) -> Project:
    bring(project, *(record(n, agent="fox" if n % 3 else "owl", success=n < 4) for n in range(9)))
    return project


def test_it_counts_what_matches_and_offers_views(desk: Project, researcher: User, client: Client) -> None:
    create_view(project=desk, name="Foxes", source="agent=fox", by=researcher)
    page = client.get(URL, {"filter": "agent=fox&success=yes"})
    assert (page.status_code, page.context["count"]) == (200, 2)
    text = page.content.decode()
    assert (
        'data-filter="success=yes"' in text and 'data-filter="agent=fox"' in text
    )  # without one, and the view
    assert 'aria-pressed="false">Foxes' in text and 'id="condition_agent"' in text
    short = client.get(URL, {"filter": "agent=fox", "matches": "1"}).content.decode()
    assert 'aria-pressed="true">Foxes' in short and "condition_agent" not in short
    assert client.get(URL).context["count"] == 9


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ("agnet=fox", "Did you mean agent?"),
        ("reward_from=x", "must be a number"),
        ("import_id=99", "import"),
        ("nonsense", "not name=value pairs"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_counted(
    filter: str, message: str, desk: Project, researcher: User, client: Client
) -> None:
    page = client.get(URL, {"filter": filter})
    assert page.status_code == 200 and message in page.context["error"] and "count" not in page.context
    assert "matches" not in page.content.decode().split("<details")[0].replace("filter-matches", "")


def test_views_and_counts_are_those_of_the_project(desk: Project, researcher: User, client: Client) -> None:
    other = Project.objects.create(slug="other", name="Other")
    create_view(
        project=other, name="Secret", source="agent=fox", by=make_member(other, "o@example.org", Role.OWNER)
    )
    bring(other, record(50, agent="fox"))
    assert client.get("/p/other/trajectories/filter/").status_code == 404
    page = client.get(URL, {"filter": "agent=fox"})
    assert page.context["count"] == 6 and "Secret" not in page.content.decode()


@pytest.mark.parametrize("path", FORMS)
def test_every_form_with_a_filter_offers_the_builder(path: str, desk: Project, client: Client) -> None:
    client.force_login(make_member(desk, "olga@example.org", Role.OWNER))
    text = client.get(f"/p/desk/{path}").content.decode()
    assert text.count(f'data-filter-url="{URL}"') == 1 and "js/filter-builder" in text


def test_questions_offer_the_builder(desk: Project) -> None:
    assert URL in str(
        QuestionForm(project=desk)["query"]
    )  # the page has the form once there is an LLM connection


@pytest.mark.parametrize("path", ["export", "delete"])
def test_a_page_whose_address_has_the_filter_takes_it_as_one_text(
    path: str, desk: Project, client: Client
) -> None:
    client.force_login(make_member(desk, "olga@example.org", Role.OWNER))
    address = f"/p/desk/datasets/trajectories/{path}/"
    assert (
        client.get(address, {"filter": " success=yes&agent=fox "})["Location"]
        == f"{address}?agent=fox&success=yes"
    )
    assert client.get(address, {"filter": ""})["Location"] == address
    wrong = client.get(address, {"filter": "agnet=fox"})
    assert wrong.status_code == 400 and b"Did you mean agent?" in wrong.content
