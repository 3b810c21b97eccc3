"""A reward study from its start to what was found: by pages, the JSON API and the command."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from apps.accounts.models import AuditEvent, Scope
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.reward_studies import executor, tasks
from apps.reward_studies.models import RewardStudy
from apps.reward_studies.services import StudyOptions, delete_reward_study, start_reward_study
from apps.rewards import remote
from apps.rewards.services import put_spec
from apps.trajectories.models import Trajectory
from tests.api_calls import ApiCaller
from tests.datasets.feedback import freeze
from tests.reward_studies.conftest import SPEC, TASKS

pytestmark = pytest.mark.usefixtures("own_home")


def done(study: RewardStudy) -> RewardStudy:
    tasks.advance_reward_studies()
    study.refresh_from_db()
    return study


def weights_of(study: RewardStudy) -> dict[str, float]:
    return {part["name"]: part["weight"] for part in study.result["components"]}


def test_weights_from_a_dataset_fill_the_compose_page(
    researcher_client, project, feedback, asks, service
) -> None:
    version = freeze(project)
    page = researcher_client.post(
        reverse("reward_studies:study-create", args=["desk"]),
        {"kind": "weights", "endpoint": "", "spec": json.dumps(SPEC)},  # the button of the compose page
    )
    assert page.context["form"]["spec"].value() == json.dumps(SPEC)
    assert RewardStudy.objects.count() == 0
    values = {"dataset": version.pk, "sample": 500, "feedback": "auto", "penalty": "l1", "start": "1"}
    page = researcher_client.post(
        reverse("reward_studies:study-create", args=["desk"]),
        values | {"kind": "weights", "spec": json.dumps(SPEC)},
    )
    assert page.status_code == 302
    study = done(RewardStudy.objects.get())
    assert (study.state, study.error, study.number) == (JobState.SUCCEEDED, "", 1)
    weights = weights_of(study)
    assert set(weights) == {"thanks", "short", "certain"}  # what has no weight keeps none
    assert weights["certain"] == 0
    assert weights["thanks"] / weights["short"] == pytest.approx(2 / 1.5, rel=0.4)
    assert study.result["form"] == "comparisons"
    assert study.result["tasks"] == TASKS
    shown = researcher_client.get(page.url)
    assert "Use these weights" in shown.content.decode()
    spec = json.loads(shown.context["new_spec"])
    assert [part["name"] for part in spec["components"]] == [
        "thanks",
        "short",
        "watch",
    ]  # a gate reads the last
    composed = researcher_client.post(
        reverse("rewards:endpoint-compose", args=["desk"]),
        {"draft": "1", "endpoint": "", "spec": json.dumps(spec)},
    )
    assert json.loads(composed.context["form"]["spec"].value()) == spec
    assert not composed.context["form"].errors
    put_spec(project=project, endpoint_name="fitted", spec=spec, by=None)  # it can be deployed as it is
    assert AuditEvent.objects.filter(verb="reward_study.started").count() == 1


def test_an_analysis_finds_what_buys_reward(researcher_client, project, feedback, asks) -> None:
    spec = {"components": SPEC["components"][:3]}
    flattery = {"name": "flattered", "type": "pattern", "expression": "excellent question", "weight": 0.5}
    spec["components"] = [*spec["components"], flattery]
    study = done(
        start_reward_study(
            project=project, kind="analysis", spec=spec, campaign="Likes", options=StudyOptions(sample=60)
        )
    )
    assert (study.state, study.error) == (JobState.SUCCEEDED, "")
    result = study.result
    assert result["trajectories"] == 60
    assert sum(part["share"] for part in result["components"]) == pytest.approx(1)
    probes = result["probes"]
    assert probes["flatter"]["components"]["flattered"] == 0.5
    assert probes["flatter"]["mean"] == pytest.approx(0.5)  # and nothing else changes
    assert probes["repeat"]["mean"] == pytest.approx(-3)  # three steps more
    assert probes["pad"]["mean"] == pytest.approx(0)
    assert probes["empty"]["raised"] < 1
    by_feature = {row["feature"]: row for row in result["format"]}
    assert by_feature["agent_steps"]["components"]["short"] == pytest.approx(-1)
    page = researcher_client.get(reverse("reward_studies:study-detail", args=["desk", study.pk]))
    assert page.status_code == 200
    drawn = result["drawn"][1]["trajectory"]
    page = researcher_client.get(
        reverse("reward_studies:study-detail", args=["desk", study.pk]), {"drawn": drawn}
    )
    assert page.context["chosen"]["trajectory"] == drawn
    indices = (
        Trajectory.objects.get(pk=drawn)
        .steps.filter(agent_step__isnull=False)
        .values_list("index", flat=True)
    )
    assert page.context["chosen"]["indices"] == sorted(indices)
    assert researcher_client.get(reverse("reward_studies:study-list", args=["desk"])).status_code == 200


def test_outcomes_of_a_filter_and_a_policy(project, feedback, asks) -> None:
    """Those with thanks succeed."""
    for trajectory in Trajectory.objects.all():
        last = trajectory.steps.order_by("-index").first()
        trajectory.success = "thank" in json.dumps(last.message)
        trajectory.save(update_fields=["success"])
    for feedback_form in ("outcomes", "policy"):
        study = done(
            start_reward_study(
                project=project,
                kind="weights",
                spec=SPEC,
                options=StudyOptions(feedback=feedback_form, sample=200),  # type: ignore[arg-type]
            )
        )
        assert (study.state, study.error) == (JobState.SUCCEEDED, "")
        weights = weights_of(study)
        assert weights["thanks"] > 0
        assert weights["short"] == weights["certain"] == 0
        assert study.result["accuracy"]["fitted"]["value"] == 1


def test_it_fails_in_words(project, feedback, asks, settings, monkeypatch) -> None:
    def failed(**values: Any) -> str:
        study = done(start_reward_study(project=project, spec=SPEC, **values))
        assert study.state == JobState.FAILED
        return study.error

    assert "There are no comparisons, ratings and outcomes here" in failed(
        kind="weights", filter="agent=none"
    )
    assert "There are no ratings here" in failed(
        kind="weights", campaign="Likes", options=StudyOptions(feedback="ratings")
    )
    assert "two are needed" in failed(kind="analysis", filter="agent=none")
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    monkeypatch.setattr(executor, "PATIENT", remote.ONCE)
    assert "The reward service does not answer" in failed(kind="analysis", campaign="Likes")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"spec": {"components": []}}, "at least one component"),
        ({"spec": {"components": SPEC["components"][:1]}}, "fewer than two components"),
        ({"spec": SPEC, "campaign": "None"}, "no campaign 'None'"),
        ({"spec": SPEC, "dataset": "none@1"}, "no dataset"),
        ({"spec": SPEC, "dataset": "a@1", "campaign": "b"}, "Choose one of"),
        ({"spec": SPEC, "options": StudyOptions(sample=0)}, "choose 1 to 2,000"),
        ({}, "Name an endpoint that has a revision"),
    ],
)
def test_what_cannot_be_started_is_refused(project, values, said) -> None:
    with pytest.raises(Exception, match=said) as caught:
        start_reward_study(project=project, kind="weights", **values)
    assert isinstance(caught.value, DomainError) or "InvalidRecord" in type(caught.value).__name__
    assert not RewardStudy.objects.exists()


def test_errors_are_at_their_fields(researcher_client, project) -> None:
    address = reverse("reward_studies:study-create", args=["desk"])
    values = {"kind": "weights", "sample": 10, "feedback": "auto", "penalty": "l1", "start": "1"}
    page = researcher_client.post(
        address, values | {"spec": json.dumps({"components": SPEC["components"][:1]})}
    )
    assert page.status_code == 422
    assert "fewer than two" in page.context["form"].errors["spec"][0]
    page = researcher_client.post(address, values | {"spec": json.dumps(SPEC), "filter": "colour=red"})
    assert "filter" in page.context["form"].errors
    page = researcher_client.post(address, values | {"spec": "{"})
    assert "not valid JSON" in page.context["form"].errors["spec"][0]


def test_the_api_and_the_command(project, feedback, asks, tmp_path, monkeypatch) -> None:
    call = ApiCaller(project, Scope.ADMIN)
    put_spec(project=project, endpoint_name="likes", spec=SPEC, by=None)
    begun = call("POST", "/reward-studies", {"kind": "weights", "endpoint": "likes", "campaign": "Likes"})
    assert call.status == 201
    study = RewardStudy.objects.get(pk=begun["id"])
    with pytest.raises(Conflict):
        delete_reward_study(study=study, by=None)
    done(study)
    found = call("GET", f"/reward-studies/{study.pk}")
    assert (found["state"], found["endpoint"]) == ("succeeded", "likes")
    assert [part["name"] for part in found["fitted_spec"]["components"]] == ["thanks", "short", "watch"]
    assert [row["number"] for row in call.all_pages("/reward-studies", 1)] == [study.number]
    waiting = call("POST", "/reward-studies", {"kind": "analysis", "endpoint": "likes"})["id"]
    assert call("POST", f"/reward-studies/{waiting}/cancel")["state"] == "cancelled"
    call("DELETE", f"/reward-studies/{waiting}")
    assert call.status == 204
    call("GET", f"/reward-studies/{waiting}")
    assert call.status == 404

    monkeypatch.setattr(job_queue, "nudge", lambda task: tasks.advance_reward_studies())
    out = io.StringIO()
    file = tmp_path / "fitted.json"
    arguments = ["study_reward", "desk", "weights", "--endpoint", "likes", "--campaign", "Likes"]
    call_command(*arguments, "--out", str(file), "--json", stdout=out, stderr=io.StringIO())
    assert json.loads(out.getvalue())["state"] == "succeeded"
    assert [part["name"] for part in json.loads(file.read_text())["components"]] == [
        "thanks",
        "short",
        "watch",
    ]
    with pytest.raises(CommandError, match="no endpoint"):
        call_command("study_reward", "desk", "analysis", "--endpoint", "none", stdout=out, stderr=out)
