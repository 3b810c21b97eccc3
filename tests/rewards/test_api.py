"""GET/PUT /projects/{p}/endpoints/{e} and POST .../rollback."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key, create_project
from apps.core.errors import Conflict
from apps.rewards import services
from apps.rewards.models import Endpoint
from apps.training.models import RewardModel
from tests.rewards.conftest import MANIFEST, Service, make_model
from tests.workers.engine.fakes import FakeModel


@pytest.fixture
def desk(db: None) -> Project:
    project = create_project(slug="desk")
    for version, aggregation in [(1, "value"), (2, "value"), (3, "mean")]:
        RewardModel.objects.create(
            project=project,
            name="m",
            version=version,
            artifact="x",
            manifest=MANIFEST | {"aggregation": aggregation},
        )
    return project


def api(project: Project, *scopes: Scope) -> Client:
    secret = create_api_key(project=project, scopes=scopes)[1]
    return Client(headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture
def admin(desk: Project) -> Client:
    return api(desk, Scope.ADMIN)


PATH = "/api/v1/projects/desk/endpoints"


def put(client: Client, spec: Any, name: str = "fresh") -> Any:
    return client.put(f"{PATH}/{name}", spec, content_type="application/json")


def spec_of(*models: str, **more: Any) -> dict:
    return {"components": [{"name": f"c{n}", "model": model} for n, model in enumerate(models)], **more}


def test_put_get_rollback(admin) -> None:
    first = put(admin, spec_of("m@1"))
    assert (first.status_code, first.json()["revision"]["number"]) == (200, 1)
    assert first.json()["spec"]["components"][0] == {
        "name": "c0",
        "type": "reward_model",
        "model": "desk/m@1",
        "weight": 1.0,
    }
    both = put(admin, spec_of("desk/m@2", "m@1", transforms=[{"type": "squash", "scale": 2}])).json()
    assert both["active"] == 2
    assert both["spec"]["transforms"] == [{"type": "normalise"}, {"type": "squash", "scale": 2.0}]
    shown = admin.get(f"{PATH}/fresh").json()
    assert [revision["number"] for revision in shown["revisions"]] == [2, 1]
    assert admin.get(PATH).json()["items"][0]["endpoint"] == "fresh"
    back = admin.generic("POST", f"{PATH}/fresh/rollback")
    assert (back.status_code, back.json()["active"]) == (200, 1)
    assert admin.generic("POST", f"{PATH}/fresh/rollback").status_code == 409
    again = admin.post(f"{PATH}/fresh/rollback", {"to": 2}, content_type="application/json")
    assert again.json()["active"] == 2
    assert put(admin, spec_of("m@2")).json()["active"] == 3


@pytest.mark.parametrize(
    ("spec", "status", "pointer"),
    [
        ({"components": []}, 422, "/components"),
        (spec_of("m@1", transforms=[{"type": "spline"}]), 422, "/transforms/0/type"),
        (spec_of("m@1", "m@9"), 404, "/components/1/model"),
        (spec_of("other/m@1"), 400, "/components/0/model"),
        (spec_of("m@1", "m@3"), 400, "/components"),
    ],
)
def test_a_bad_spec_changes_nothing(admin, spec, status, pointer) -> None:
    reply = put(admin, spec)
    assert (reply.status_code, reply.json()["pointer"]) == (status, pointer)
    assert not Endpoint.objects.exists()


def test_who_may(desk, admin) -> None:
    put(admin, spec_of("m@1"))
    assert api(desk, Scope.REWARD, Scope.TRAIN).get(f"{PATH}/fresh").status_code == 403
    assert api(create_project(slug="other"), Scope.ADMIN).get(f"{PATH}/fresh").status_code == 404
    assert Client().get(f"{PATH}/fresh").status_code == 401
    assert admin.get(f"{PATH}/nothing").status_code == 404


def test_projects_have_names_of_their_own(desk, admin) -> None:
    put(admin, spec_of("m@1"))
    third = api(other := create_project(slug="third"), Scope.ADMIN)
    RewardModel.objects.create(project=other, name="m", version=1, artifact="x", manifest=MANIFEST)
    path = "/api/v1/projects/third/endpoints/fresh"
    reply = third.put(path, spec_of("m@1"), content_type="application/json")
    assert (reply.status_code, reply.json()["project"]) == (200, "third")
    third.put(
        path, spec_of("m@1", transforms=[{"type": "squash", "scale": 2}]), content_type="application/json"
    )
    assert (third.get(path).json()["active"], admin.get(f"{PATH}/fresh").json()["active"]) == (2, 1)
    with pytest.raises(Conflict, match="already has an endpoint 'fresh'"):
        services.create_endpoint(project=desk, name="fresh", by=None)


def test_a_write_sent_again_is_done_once(admin) -> None:
    for version in (1, 2):
        put(admin, spec_of(f"m@{version}"))
    once = {"Idempotency-Key": "k1"}
    replies = [
        admin.put(f"{PATH}/fresh", spec_of("m@1", "m@2"), content_type="application/json", headers=once)
        for _ in range(2)
    ]
    assert [reply.json()["active"] for reply in replies] == [3, 3]
    once = {"Idempotency-Key": "k2"}
    replies = [admin.generic("POST", f"{PATH}/fresh/rollback", headers=once) for _ in range(2)]
    assert [reply.json()["active"] for reply in replies] == [2, 2]
    assert admin.get(f"{PATH}/fresh").json()["active"] == 2


def test_the_list_goes_on_by_cursor(admin) -> None:
    for number in range(3):
        put(admin, spec_of("m@1"), name=f"e{number}")
    page = admin.get(f"{PATH}?limit=2").json()
    assert [item["endpoint"] for item in page["items"]] == ["e2", "e1"]
    rest = admin.get(f"{PATH}?limit=2&cursor={page['next']}").json()
    assert ([item["endpoint"] for item in rest["items"]], rest["next"]) == (["e0"], None)


def test_a_model_that_is_deleted_meanwhile_is_named_by_its_place(project, monkeypatch) -> None:
    make_model(project, Service(), FakeModel(), name="m")

    def lock(model: RewardModel) -> None:
        raise Conflict(f"{model} has been deleted.")

    monkeypatch.setattr(services, "lock_usable", lock)
    with pytest.raises(Conflict) as caught:
        services.put_spec(project=project, endpoint_name="e", spec=spec_of("m@1"), by=None)
    assert caught.value.pointer == "/components/0/model"


def test_switching_off_and_on(admin) -> None:
    put(admin, spec_of("m@1"))
    path, json_type = f"{PATH}/fresh/switch-off", "application/json"
    refused = admin.post(path, {"reason": " "}, content_type=json_type)
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/reason")
    off = admin.post(path, {"reason": "looks hacked"}, content_type=json_type).json()
    assert (off["switched_off"], off["switched_off_reason"]) == (True, "looks hacked")
    on = admin.generic("POST", f"{PATH}/fresh/switch-on").json()
    assert (on["switched_off"], on["switched_off_reason"], on["active"]) == (False, "", off["active"])
