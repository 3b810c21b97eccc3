"""Composing a reward: the form, its errors, a dry run on stored trajectories, and the way to a revision."""

import json
from typing import Any

import httpx
import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project
from apps.rewards.models import Endpoint, EndpointRevision
from apps.rewards.tokens import make_token
from apps.trajectories.services import store_trajectories
from tests.core.servers import Handler, serving
from tests.rewards.conftest import wait_until
from tests.workers.engine.fakes import FakeModel
from workers import schema

SPEC = {
    "components": [
        {"name": "main", "model": "politeness@1"},
        {"name": "short", "type": "step_penalty", "weight": 2, "free": 1},
    ],
    "transforms": [{"type": "squash", "scale": 4}],
}


@pytest.fixture
def asks(service, settings) -> None:
    settings.REWARDS_ADDRESS = service.url


def store(project: Project, *agents: list[str]) -> None:
    trajectories = []
    for number, said in enumerate(agents):
        messages = [{"role": "user", "content": f"Question {number}?"}]
        messages += [{"role": "assistant", "content": text} for text in said]
        task = schema.Task(id=f"t{number}")
        trajectories.append(schema.Trajectory(steps=schema.from_messages(messages), task=task))
    store_trajectories(project=project, trajectories=trajectories, source_format="openai")


def post(client: Client, spec: Any, **more: str) -> Any:
    data = {"endpoint": "desk-reward", "spec": spec if isinstance(spec, str) else json.dumps(spec)}
    return client.post(reverse("rewards:endpoint-compose", args=["desk"]), data | more)


def test_it_begins_with_what_answers_now(researcher_client, endpoint) -> None:
    page = researcher_client.get(reverse("rewards:endpoint-compose", args=["desk"]), {"endpoint": endpoint})
    assert json.loads(page.context["form"]["spec"].value()) == Endpoint.objects.get().active.spec
    fresh = researcher_client.get(reverse("rewards:endpoint-compose", args=["desk"]))
    assert "desk/politeness@1" in fresh.context["form"]["spec"].value()


def test_a_dry_run_shows_what_would_change_and_deploys_nothing(
    researcher_client, project, endpoint, asks, service
) -> None:
    store(project, ["aa"], ["b", "c", "d"], ["zzzz"])
    loaded = list(service.loaded)
    page = post(researcher_client, SPEC)
    tried = page.context["tried"]
    assert (tried.count, tried.pairs) == (3, 3)
    longest = tried.rows[0]  # three steps: moved most
    plain = (0.25 + (98 + 99 + 100) / 1000 - 0.5) / 2
    assert longest.before == pytest.approx(plain)
    assert longest.components == {"main": pytest.approx(plain), "short": -4.0}
    assert tried.turned > 0
    assert "Nothing is deployed" in page.content.decode()
    assert EndpointRevision.objects.count() == 1
    assert service.loaded == loaded  # what is served already is not loaded again
    assert service.deployed[endpoint].version.number == 1


def test_a_model_that_is_served_nowhere_is_let_go_of(
    researcher_client, project, endpoint, asks, service
) -> None:
    from tests.rewards.conftest import make_model

    make_model(project, service, FakeModel(factor=2.0), name="other")
    store(project, ["aa"])
    spec = {"components": [{"name": "o", "model": "other@1"}]}
    assert post(researcher_client, spec).context["tried"].count == 1
    wait_until(lambda: set(service.state.deployments._shared) == {("models/desk-politeness-1", None)})


def test_it_is_deployed(researcher_client, endpoint) -> None:
    assert post(researcher_client, SPEC, deploy="1").status_code == 302
    spec = Endpoint.objects.get().active.spec
    assert [component["type"] for component in spec["components"]] == ["reward_model", "step_penalty"]
    assert spec["components"][0]["model"] == "desk/politeness@1"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ({"components": []}, "at least one component"),
        ({"components": [{"name": "a", "model": "nobody@1"}]}, "/components/0/model"),
        ({"components": [{"name": "p", "type": "pattern", "expression": "("}]}, "/components/0/expression"),
        (
            {"components": [{"name": "v", "type": "verifier", "url": "http://127.0.0.1/"}]},
            "/components/0/url",
        ),
        (
            {"components": [{"name": "m", "model": "politeness@1"}], "transforms": [{"type": "delta"}]},
            "/transforms/1",
        ),
    ],
)
def test_what_is_wrong_is_said_at_the_spec(researcher_client, endpoint, asks, spec, said) -> None:
    for more in ({}, {"deploy": "1"}):
        page = post(researcher_client, spec, **more)
        assert page.status_code == 200
        assert said in " ".join(page.context["form"].errors["spec"])


def test_without_trajectories_or_service(researcher_client, project, endpoint, asks, settings) -> None:
    assert "No trajectories to score" in post(researcher_client, SPEC).content.decode()
    store(project, ["aa"])
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    assert "did not respond" in post(researcher_client, SPEC).context["failure"]


def test_a_dry_run_is_the_web_processes_own(service, endpoint, key, project) -> None:
    body = {"spec": SPEC, "artifacts": {}, "trajectory_ids": []}
    with httpx.Client(base_url=service.url, trust_env=False) as client:

        def status(secret: str) -> int:
            headers = {"Authorization": f"Bearer {secret}"}
            return client.post("/internal/dry-run", json=body, headers=headers).status_code

        assert status(key) == 404
        assert status("nobody") == 401
        assert status(make_token("desk")) == 400  # the spec names a model it was not given


def test_a_verifier_is_asked(service, http, project, endpoint, settings) -> None:
    """A gate on an HTTP service: its answer counts, and without one there is no reward."""
    answers: list[Any] = [
        {"rewards": [1.0, 0.0]},
        {"rewards": [1.0]},
        {"rewards": [1.0, None]},
        "nonsense",
        500,
    ]
    asked: list[Any] = []

    class Verifying(Handler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answer = answers.pop(0)
            body = json.dumps(answer).encode()
            self.send_response(answer if isinstance(answer, int) else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    from apps.rewards.services import put_spec

    with serving(Verifying) as url:
        spec = {
            "components": [
                {"name": "m", "model": "politeness@1"},
                {"name": "right", "type": "verifier", "url": f"{url}/check", "weight": 0},
            ],
            "transforms": [{"type": "gate", "component": "right", "otherwise": -9}],
        }
        put_spec(project=project, endpoint_name=endpoint, spec=spec, by=None)
        wait_until(lambda: http.get(f"/api/v1/rewards/{endpoint}/").json()["version"] == 2)
        items = [{"prompt": "?", "response": "a", "reference": "42"}, {"text": "b"}]

        def ask() -> httpx.Response:
            return http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": items})

        right, wrong = ask().json()["results"]
        assert (right["reward"], wrong["reward"]) == (pytest.approx((0.25 + 0.097 - 0.5) / 2), -9.0)
        assert asked[0]["inputs"][0]["reference"] == "42"
        assert asked[0]["inputs"][1] == {"text": "b"}
        for status in (502, 502, 502, 503):
            reply = ask()
            assert (reply.status_code, reply.headers["Retry-After"]) == (status, "5"), reply.text
