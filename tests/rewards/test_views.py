"""The pages of endpoints: they work, refuse wrong methods and strangers, and let only researchers in."""

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project, Role
from apps.accounts.services import create_project, create_user
from apps.rewards.models import Endpoint
from apps.rewards.services import deploy
from apps.training.models import RewardModel
from tests.factories import member_client, signed_in
from tests.rewards.conftest import MANIFEST


@pytest.fixture
def desk(db: None) -> Project:
    return create_project(slug="desk")


@pytest.fixture
def model(desk: Project) -> RewardModel:
    return RewardModel.objects.create(
        project=desk, name="politeness", version=1, artifact="models/a", manifest=MANIFEST
    )


@pytest.fixture
def sample(desk: Project, model: RewardModel) -> Endpoint:
    return deploy(model=model, endpoint_name="desk-reward", project=desk, by=None).endpoint


@pytest.fixture
def researcher_client(desk: Project) -> Client:
    return member_client(desk, Role.RESEARCHER)


def url(name: str, *args: str) -> str:
    return reverse(f"rewards:{name}", args=["desk", *args])


GETS = [
    ("endpoint-list", ()),
    ("endpoint-deploy", ()),
    ("endpoint-detail", ("desk-reward",)),
    ("endpoint-state", ("desk-reward",)),
]
POSTS = [(f"endpoint-{verb}", ("desk-reward",)) for verb in ("try", "rollback", "switch")]


@pytest.mark.parametrize(("name", "args"), GETS)
def test_pages_are_for_researchers(desk, sample, researcher_client, settings, name, args) -> None:
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    assert researcher_client.get(url(name, *args)).status_code == 200
    assert member_client(desk, Role.REVIEWER).get(url(name, *args)).status_code == 403
    outsider, _ = create_user(email="stranger@example.org", password="long enough for all")
    assert signed_in(outsider).get(url(name, *args)).status_code == 404
    assert Client().get(url(name, *args)).status_code == 302


@pytest.mark.parametrize(("name", "args"), POSTS)
def test_what_changes_something_is_posted_by_researchers(desk, sample, researcher_client, name, args) -> None:
    assert researcher_client.get(url(name, *args)).status_code == 405
    assert member_client(desk, Role.ANNOTATOR).post(url(name, *args)).status_code == 403
    assert researcher_client.post(url(name, "nothing")).status_code == 404


def test_the_list_is_empty_then_names_what_is_deployed(desk, researcher_client) -> None:
    assert "No models yet" in researcher_client.get(url("endpoint-list")).content.decode()
    model = RewardModel.objects.create(
        project=desk, name="m", version=1, artifact="models/a", manifest=MANIFEST
    )
    assert "No endpoints yet" in researcher_client.get(url("endpoint-list")).content.decode()
    deploy(model=model, endpoint_name="desk-reward", project=desk, by=None)
    page = researcher_client.get(url("endpoint-list")).content.decode()
    assert "desk-reward" in page
    assert "desk/m@1" in page


def test_deploying(desk, model, researcher_client) -> None:
    form = researcher_client.get(
        url("endpoint-deploy") + "?model=desk/politeness@1&endpoint=fresh"
    ).content.decode()
    assert 'value="fresh"' in form
    data = {"model": model.pk, "endpoint": "fresh", "transform": "clip", "amount": "0.5"}
    assert researcher_client.post(url("endpoint-deploy"), data).url == url("endpoint-detail", "fresh")
    endpoint = Endpoint.objects.get(name="fresh")
    assert endpoint.active.spec["transforms"] == [{"type": "normalise"}, {"type": "clip", "eta": 0.5}]
    assert endpoint.active.created_by.email == "researcher@example.org"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"endpoint": "deploy"}, "is reserved for a page"),
        ({"endpoint": "a b"}, "valid"),
        ({"endpoint": "fresh", "transform": "squash", "amount": "-1"}, "Expected `float` &gt; 0.0"),
        ({"endpoint": "fresh", "transform": "delta"}, "not one of the available choices"),
    ],
)
def test_deploying_what_cannot_be_says_why(desk, model, researcher_client, data, message) -> None:
    other = create_project(slug="other")
    theirs = RewardModel.objects.create(project=other, name="m", version=1, artifact="x", manifest=MANIFEST)
    page = researcher_client.post(url("endpoint-deploy"), {"model": model.pk, **data})
    assert page.status_code == 200
    assert message in page.content.decode()
    foreign = researcher_client.post(url("endpoint-deploy"), {"model": theirs.pk, "endpoint": "fresh"})
    assert "not one of the available choices" in foreign.content.decode()
    assert Endpoint.objects.filter(project=desk).count() == 0


def test_the_detail_has_the_right_address(sample, researcher_client, settings) -> None:
    settings.PUBLIC_URL = "https://touchstone.example.org"
    page = researcher_client.get(url("endpoint-detail", "desk-reward")).content.decode()
    assert "curl -s https://touchstone.example.org/api/v1/rewards/desk-reward/score" in page
    assert "https://touchstone.example.org/compat/openrlhf/desk-reward/get_reward?key=KEY" in page


def test_rolling_back_from_the_page(desk, model, sample, researcher_client) -> None:
    deploy(model=model, endpoint_name="desk-reward", project=desk, by=None)
    researcher_client.post(url("endpoint-rollback", "desk-reward"), {"to": "1"})
    sample.refresh_from_db()
    assert sample.active.number == 1
    assert researcher_client.post(url("endpoint-rollback", "desk-reward"), {"to": "9"}).status_code == 409


def test_the_off_switch_wants_a_reason(sample, researcher_client) -> None:
    page = researcher_client.post(url("endpoint-switch", "desk-reward"), {"reason": " "})
    assert "This field is required" in page.content.decode()
    researcher_client.post(url("endpoint-switch", "desk-reward"), {"reason": "<b>hacked</b>"})
    sample.refresh_from_db()
    assert (sample.switched_off, sample.switched_off_reason) == (True, "<b>hacked</b>")
    assert (
        "&lt;b&gt;hacked&lt;/b&gt;"
        in researcher_client.get(url("endpoint-detail", "desk-reward")).content.decode()
    )
    researcher_client.post(url("endpoint-switch", "desk-reward"), {"on": "1"})
    sample.refresh_from_db()
    assert not sample.switched_off


def test_without_a_service_the_pages_say_so(sample, researcher_client, settings) -> None:
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    state = researcher_client.get(url("endpoint-state", "desk-reward")).content.decode()
    assert "did not respond" in state
    assert "hx-trigger" not in state
    tried = researcher_client.post(url("endpoint-try", "desk-reward"), {"response": "Hello"}).content.decode()
    assert "did not respond" in tried


def test_the_node_of_the_project_home(desk, sample, researcher_client) -> None:
    assert "View endpoints" in researcher_client.get(url("project-node")).content.decode()
    assert member_client(desk, Role.ANNOTATOR).get(url("project-node")).status_code == 403


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_trying_an_endpoint_shows_its_steps(service, endpoint, project, settings, headers) -> None:
    settings.REWARDS_ADDRESS = service.url
    researcher_client = member_client(project, Role.RESEARCHER)
    item = '{"messages": [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]}'
    page = researcher_client.post(
        url("endpoint-try", endpoint), {"item": item}, headers=headers
    ).content.decode()
    assert "Reward −0.0275" in page
    assert "+0.0970" in page
    assert "+0.0980" in page
    assert ("<html" in page) == (not headers)
    assert "Active revision" in researcher_client.get(url("endpoint-detail", endpoint)).content.decode()
    assert "desk/politeness@1" in researcher_client.get(url("endpoint-state", endpoint)).content.decode()
    bad = researcher_client.post(
        url("endpoint-try", endpoint), {"item": "{"}, headers=headers
    ).content.decode()
    assert "not valid JSON" in bad
    refused = researcher_client.post(url("endpoint-try", endpoint), {"item": '{"text": 3}'}, headers=headers)
    assert "/inputs/0/text" in refused.content.decode()
    assert "Enter a response" in researcher_client.post(url("endpoint-try", endpoint), {}).content.decode()
