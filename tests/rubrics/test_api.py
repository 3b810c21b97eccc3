"""Rubrics over the JSON API."""

import pytest

from apps.accounts.models import Project, Scope
from apps.annotation.services import create_campaign
from apps.rubrics.models import Rubric
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.rubrics.yaml_documents import write
from tests.api_calls import ApiCaller

BODY = {
    "name": "Support / desk",
    "about": "What a customer may expect.",
    "criteria": [
        {"name": "polite", "definition": "Stays courteous.", "scale": [1, 5], "good": "Sorry.", "rank": 2},
        {"name": "short", "scale": [0, 3], "weight": 0.5},
    ],
}
DRAFTS = [CriterionDraft(name="polite"), CriterionDraft(name="short", rank=2)]


@pytest.fixture
def call(project: Project) -> ApiCaller:
    return ApiCaller(project)


def test_a_rubric_is_what_its_yaml_says(call: ApiCaller) -> None:
    import yaml

    saved = call("POST", "/rubrics", BODY)
    assert call.status == 201 and saved["rubric"] == "Support / desk@1" and saved["used"] is False
    document = yaml.safe_load(write(Rubric.objects.get()))
    for criterion, written in zip(saved["criteria"], document["criteria"], strict=True):
        assert {key: criterion[key] for key in written} == written
    assert call("GET", "/rubrics/Support%20%2F%20desk") == saved
    # What was read can be sent again, and changes nothing.
    again = {key: saved[key] for key in ("name", "about", "criteria")}
    assert call("POST", "/rubrics", again) == saved


def test_a_version_in_use_stays(call: ApiCaller, project: Project) -> None:
    call("POST", "/rubrics", BODY)
    create_campaign(project=project, name="c", feedback_types=["rubric"], rubric=Rubric.objects.get())
    changed = call("POST", "/rubrics", BODY | {"about": "Else."})
    assert changed["version"] == 2
    assert call("GET", "/rubrics/Support%20%2F%20desk@1")["about"] == BODY["about"]
    assert call("GET", "/rubrics/Support%20%2F%20desk")["version"] == 2
    call("GET", "/rubrics/Support%20%2F%20desk@3")
    assert call.status == 404


def test_the_list_has_the_newest_of_each(call: ApiCaller, project: Project) -> None:
    for name in ("a", "b", "c@1"):
        save_rubric(project=project, name=name, criteria=[CriterionDraft(name="short")])
    assert [row["name"] for row in call.all_pages("/rubrics", 2)] == ["c@1", "b", "a"]
    assert call("GET", "/rubrics/c@1")["rubric"] == "c@1@1"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"criteria": []}, "/criteria"),
        ({"criteria": [{"name": "a"}, {"name": "a"}]}, "/criteria/1/name"),
        ({"criteria": [{"name": "a", "scale": [1, 1]}]}, "/criteria/0/scale"),
        ({"criteria": [{"name": "a", "colour": "red"}]}, "/criteria/0/colour"),
        ({"name": " "}, "/name"),
        ({"title": "x"}, "/title"),
    ],
)
def test_what_is_wrong_is_named(call: ApiCaller, change: dict[str, object], pointer: str) -> None:
    refused = call("POST", "/rubrics", BODY | change)
    assert call.status in (400, 422) and refused["pointer"] == pointer
    assert not Rubric.objects.exists()


def test_factors_are_ranked(call: ApiCaller, project: Project) -> None:
    rubric = save_rubric(project=project, name="Good/all", criteria=DRAFTS)
    assert call("GET", "/rubrics/Good%2Fall")["factors"] == ["polite", "short"]
    path, ranking = "/rubrics/Good%2Fall@1/factors", ["-short", "metadata.cost", "outcome"]
    saved = call("PUT", path, {"factors": [f" {factor}" for factor in ranking]})
    assert (call.status, saved["factors"], saved["version"]) == (200, ranking, 1)
    rubric.refresh_from_db()
    assert rubric.factors == ranking
    assert (
        call("PUT", "/rubrics/Good%2Fall/factors", {"factors": []})["factors"] == []
    )  # of the newest version
    for factors, pointer in ((["rude"], "/factors/0"), (["steps", "-steps"], "/factors/1")):
        refused = call("PUT", path, {"factors": factors})
        assert (call.status, refused["pointer"]) == (400, pointer)
    call("PUT", "/rubrics/Bad/factors", {"factors": []})
    assert call.status == 404


def test_only_an_admins_key_ranks_factors(project: Project) -> None:
    save_rubric(project=project, name="Good", criteria=DRAFTS)
    call = ApiCaller(project, Scope.FEEDBACK_READ, Scope.TRAIN)
    assert call("GET", "/rubrics/Good")["factors"] == ["polite", "short"]
    call("PUT", "/rubrics/Good/factors", {"factors": ["short"]})
    assert call.status == 403
