"""A new version of a model on an endpoint keeps every setting of its active revision, unless it is given again."""

from typing import Any

import msgspec
import pytest
from django.test import Client

from apps.accounts.models import Project
from apps.accounts.services import create_project
from apps.core.errors import DomainError
from apps.rewards.models import Endpoint
from apps.rewards.selectors import spec_of
from apps.rewards.services import ReleaseOptions, deploy, keep_samples, put_spec, switch_off
from apps.rewards.specs import spec_with_model
from apps.training.models import RewardModel
from workers.schema.components import JudgePart, Pattern, RewardModelPart, StepPenalty
from workers.schema.endpoints import EndpointSpec
from workers.schema.transforms import Gate

pytestmark = pytest.mark.django_db
SPEC: dict[str, Any] = {
    "components": [
        {"name": "main", "type": "reward_model", "model": "m@1", "weight": 0.5},
        {"name": "tone", "type": "criterion", "model": "m@1", "criterion": "polite", "weight": 2.0},
        {"name": "short", "type": "step_penalty", "weight": 0.1, "free": 3},
        {"name": "shape", "type": "pattern", "expression": "^ok", "weight": 0.2},
    ],
    "transforms": [
        {"type": "squash", "scale": 3.0},
        {"type": "gate", "component": "shape", "at_least": 0.4, "otherwise": -2.0},
        {"type": "risk", "k": 0.25},
    ],
    "policy_template": "qwen3",
    "group_size": 8,
    "guard": {"on_failure": "allow"},
}


@pytest.fixture
def project() -> Project:
    return create_project(slug="desk")


def model(project: Project, name: str, version: int) -> RewardModel:
    manifest = {"aggregation": "value", "template_fingerprint": "fake", "criteria": {"polite": {}}}
    return RewardModel.objects.create(
        project=project, name=name, version=version, artifact=f"models/{name}-{version}", manifest=manifest
    )


def composed(project: Project, settings: Any, **more: Any) -> Endpoint:
    settings.VLLM_SERVERS = {"gpu": "http://127.0.0.1:9"}
    model(project, "m", 1)
    return put_spec(project=project, endpoint_name="e", spec=SPEC | more, by=None).endpoint


@pytest.mark.parametrize("on_server", [False, True])
def test_no_setting_of_the_spec_is_lost(project, settings, on_server: bool) -> None:
    first, criterion, *rules = SPEC["components"]
    parts = [first | {"server": "gpu"}, *rules] if on_server else [first, criterion, *rules]
    endpoint = composed(project, settings, components=parts)
    keep_samples(endpoint=endpoint, share=0.5, by=None, days=3, most=7, redacts=["email"], patterns=["x+"])
    switch_off(endpoint=endpoint, reason="checks", by=None)
    before = spec_of(endpoint.revisions.get())
    kept = Endpoint.objects.values().get()
    defaults = EndpointSpec(components=())
    for field in msgspec.structs.fields(EndpointSpec):  # a setting that is added later is tested too
        assert getattr(before, field.name) != getattr(defaults, field.name), f"set {field.name} in SPEC"
    for part in before.components:
        if isinstance(part, RewardModelPart | StepPenalty | Pattern):
            assert part.weight != 1
    new = model(project, "m", 2)
    deploy(model=new, endpoint_name="e", project=project, by=None, release_options=ReleaseOptions("shadow"))
    revision = deploy(model=new, endpoint_name="e", project=project, by=None)
    assert spec_of(revision) == before.with_models({"desk/m@1": "desk/m@2"})
    assert {use.model.version for use in revision.uses.all()} == {2}
    assert Endpoint.objects.values().get() == kept | {"active_id": revision.pk}


def test_transforms_that_are_given_replace_those_of_the_active_revision(project, settings) -> None:
    composed(project, settings)
    transforms: list[dict[str, Any]] = [{"type": "clip", "eta": 0.5}]
    revision = deploy(
        model=model(project, "m", 2), endpoint_name="e", project=project, by=None, transforms=transforms
    )
    assert revision.spec["transforms"] == [{"type": "normalise"}, {"type": "clip", "eta": 0.5}]
    assert revision.spec["policy_template"] == "qwen3"
    assert "group_size" not in revision.spec  # nothing compares the inputs of a group now


def test_transforms_of_groups_keep_the_size_of_a_group(project, settings) -> None:
    composed(project, settings)
    transforms: list[dict[str, Any]] = [{"type": "cvar", "alpha": 0.5}]
    revision = deploy(
        model=model(project, "m", 2), endpoint_name="e", project=project, by=None, transforms=transforms
    )
    assert revision.spec["group_size"] == 8


def test_a_spec_keeps_the_policy_template_unless_it_is_given(project, settings) -> None:
    composed(project, settings)
    bare = {"components": [{"name": "main", "model": "m@1"}]}
    for given, expected in (({}, "qwen3"), ({"policy_template": "llama3"}, "llama3"), ({}, "llama3")):
        revision = put_spec(project=project, endpoint_name="e", spec=bare | given, by=None)
        assert revision.spec["policy_template"] == expected
    revision = put_spec(project=project, endpoint_name="e", spec=bare | {"policy_template": None}, by=None)
    assert "policy_template" not in revision.spec


def test_a_component_named_after_its_model_is_renamed_where_gates_look_too(project) -> None:
    deploy(model=model(project, "m", 1), endpoint_name="e", project=project, by=None)
    gate = {"type": "gate", "component": "m", "at_least": 0.4, "otherwise": -2.0}
    put_spec(
        project=project,
        endpoint_name="e",
        spec={"components": [{"name": "m", "model": "m"}], "transforms": [gate]},
        by=None,
    )
    spec = spec_of(deploy(model=model(project, "n", 1), endpoint_name="e", project=project, by=None))
    assert [(part.name, part.model) for part in spec.components if isinstance(part, RewardModelPart)] == [
        ("n", "desk/n@1")
    ]
    assert [part.component for part in spec.transforms if isinstance(part, Gate)] == ["n"]


def test_of_several_models_the_one_of_the_same_name_is_replaced_or_none(project) -> None:
    for name in ("m", "n"):
        model(project, name, 1)
    both = {"components": [{"name": name, "model": f"{name}@1"} for name in ("m", "n")]}
    put_spec(project=project, endpoint_name="e", spec=both, by=None)
    revision = deploy(model=model(project, "n", 2), endpoint_name="e", project=project, by=None)
    assert spec_of(revision).models == ("desk/m@1", "desk/n@2")
    with pytest.raises(
        DomainError, match="has desk/m@1, desk/n@2, so it is not clear what desk/o@1 replaces"
    ):
        deploy(model=model(project, "o", 1), endpoint_name="e", project=project, by=None)


def test_a_component_of_another_type_keeps_its_name() -> None:
    """A judge that has the name of the model: only what the model itself is called by follows the model."""
    parts = (RewardModelPart(name="main", model="desk/helpful@1"), JudgePart(name="helpful", judge="j"))
    new = RewardModel(project=Project(slug="desk"), name="other", version=1)
    found = spec_with_model(EndpointSpec(parts, (Gate(component="helpful", at_least=0.0),)), new, None)
    assert [(part.name, getattr(part, "model", None)) for part in found.components] == [
        ("main", "desk/other@1"),
        ("helpful", None),
    ]
    assert found.components_read == {"helpful"}


def test_a_release_needs_another_revision(project: Project, settings: Any, researcher_client: Client) -> None:
    composed(project, settings)
    page = "/p/desk/endpoints/e/release/start/"
    empty = researcher_client.get(page).content.decode()
    assert "No other revision" in empty and 'href="/p/desk/endpoints/deploy/"' in empty
    assert "Start release" not in empty
    put_spec(project=project, endpoint_name="e", spec=SPEC, by=None)
    full = researcher_client.get(page).content.decode()
    assert "No other revision" not in full and "Start release" in full
