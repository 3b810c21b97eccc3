"""Reward programs are stored in versions, tried on stored trajectories, and only then deployed."""

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import AuditEvent, Scope
from apps.core.errors import Conflict, DomainError
from apps.core.jobs.job_queue import JobState
from apps.reward_programs import tasks
from apps.reward_programs.code_difference import CodeLine, changed_lines
from apps.reward_programs.models import RewardProgramJob, RewardProgramVersion
from apps.reward_programs.services import (
    DryRunOptions,
    accept_reward_program,
    create_reward_program,
    start_dry_run,
)
from apps.rewards.models import Endpoint
from apps.rewards.services import put_spec, rollback
from apps.trajectories.models import Trajectory
from tests.api_calls import ApiCaller
from tests.reward_studies import conftest as desk

pytestmark = pytest.mark.usefixtures("own_home")
project, researcher_client, feedback, key = desk.project, desk.researcher_client, desk.feedback, desk.key

GOOD = "def reward(trajectory):\n    return -float(len(trajectory['steps']))\n"
BAD = (
    "def reward(trajectory):\n"
    "    text = trajectory['steps'][-1]['message']\n"
    "    return float(text) if 'thank' in text else 1.0\n"
)


def done(job: RewardProgramJob) -> RewardProgramJob:
    tasks.advance_reward_programs()
    job.refresh_from_db()
    return job


def spec(program: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if program is None else {"program": program}
    return {"components": [{"name": "p", "type": "python", "low": -9, "high": 0, **named, **more}]}


def test_only_what_passed_a_dry_run_is_deployed(researcher_client, project, feedback) -> None:
    page = researcher_client.post(
        reverse("reward_programs:program-create", args=["desk"]), {"name": "short", "code": GOOD, "note": "n"}
    )
    program = RewardProgramVersion.objects.get()
    assert page.url == reverse("reward_programs:program-detail", args=["desk", program.pk])
    assert (program.code, str(program)) == (GOOD, "desk/short@1")
    with pytest.raises(DomainError, match="No dry run of desk/short@1 has passed") as caught:
        put_spec(project=project, endpoint_name="e", spec=spec("short@1"), by=None)
    assert caught.value.pointer == "/components/0/program"
    with pytest.raises(DomainError, match="is not stored"):
        put_spec(project=project, endpoint_name="e", spec=spec(code=GOOD), by=None)
    page = researcher_client.post(page.url, {"filter": "", "sample": 50, "seconds": 1})
    job = done(RewardProgramJob.objects.get())
    assert (job.state, job.result["passed"], job.result["trajectories"]) == (JobState.SUCCEEDED, True, 50)
    assert job.result["values"]["high"] == -2.0 and job.result["highest"][0]["value"] == -2.0
    assert b"Passed" in researcher_client.get(page.url).content
    revision = put_spec(project=project, endpoint_name="e", spec=spec("short"), by=None)
    (part,) = revision.spec["components"]
    assert (part["program"], part["code"], part["code_hash"]) == ("desk/short@1", GOOD, program.code_hash)
    put_spec(project=project, endpoint_name="e", spec=revision.spec, by=None)  # what was read can be sent
    with pytest.raises(DomainError, match="`code` is not that of desk/short@1"):
        put_spec(project=project, endpoint_name="e", spec=spec("short@1", code=BAD), by=None)
    with pytest.raises(DomainError, match="There is no reward program desk/short@2"):
        put_spec(project=project, endpoint_name="e", spec=spec("short@2"), by=None)
    verbs = set(AuditEvent.objects.values_list("verb", flat=True))
    assert {"reward_program.created", "reward_program.dry_run_started"} <= verbs


def test_a_dry_run_that_fails_says_where_and_quotes_no_trajectory(
    researcher_client, project, feedback
) -> None:
    program = create_reward_program(project=project, name="bad", code=BAD, by=None)
    job = done(start_dry_run(program=program, options=DryRunOptions(sample=500), by=None))
    assert job.state == JobState.SUCCEEDED and not job.result["passed"]
    (failure,) = job.result["failures"]
    assert failure["reason"] == "line 3: ValueError (in `return float(text) if 'thank' in text else 1.0`)."
    assert failure["count"] == job.result["failed"] < job.result["trajectories"]
    assert "Answer" not in str(job.result)
    program.refresh_from_db()
    assert program.dry_run_passed_at is None and program.status == "No dry run has passed"
    page = researcher_client.get(reverse("reward_programs:job-detail", args=["desk", job.pk]))
    assert "line 3: ValueError" in page.content.decode()
    nothing = done(start_dry_run(program=program, options=DryRunOptions(filter="agent=none"), by=None))
    assert (nothing.state, "No trajectory passes" in nothing.error) == (JobState.FAILED, True)
    for options, said in (
        ({"sample": 0}, "choose 1 to"),
        ({"seconds": 60.0}, "seconds"),
        ({"filter": "x=1"}, ""),
    ):
        with pytest.raises(DomainError, match=said or None):
            start_dry_run(program=program, options=DryRunOptions(**options), by=None)


def test_a_draft_waits_for_a_person(researcher_client, project, feedback) -> None:
    draft = create_reward_program(project=project, name="short", code=GOOD, by=None, is_draft=True)
    assert done(start_dry_run(program=draft, by=None)).result["passed"]
    with pytest.raises(DomainError, match="is a draft of a language model"):
        put_spec(project=project, endpoint_name="e", spec=spec("short@1"), by=None)
    of_a_service_account = ApiCaller(project, Scope.ADMIN)
    answer = of_a_service_account("POST", f"/reward-programs/{draft.pk}/accept")
    assert of_a_service_account.status == 403 and "Only a person may accept the draft" in answer["detail"]
    copy = of_a_service_account("POST", "/reward-programs", {"name": "copy", "code": GOOD})
    assert (copy["origin"], copy["accepted"]) == ("draft", None)
    draft.refresh_from_db()
    assert draft.accepted_at is None
    researcher_client.post(reverse("reward_programs:program-accept", args=["desk", draft.pk]))
    put_spec(project=project, endpoint_name="e", spec=spec("short@1"), by=None)
    draft.refresh_from_db()
    assert draft.accepted_by is not None
    with pytest.raises(Conflict):
        accept_reward_program(program=draft, by=None)
    by_a_person = create_reward_program(project=project, name="mine", code=GOOD, by=draft.accepted_by)
    assert by_a_person.accepted_at is not None


def test_a_version_is_deleted_unless_an_endpoint_serves_it(researcher_client, project, feedback) -> None:
    program = create_reward_program(project=project, name="short", code=GOOD, by=None)
    assert done(start_dry_run(program=program, by=None)).result["passed"]
    put_spec(project=project, endpoint_name="e", spec=spec("short@1"), by=None)
    call = ApiCaller(project, Scope.ADMIN)
    refused = call("DELETE", f"/reward-programs/{program.pk}")
    assert call.status == 409 and "the endpoint e serves it" in refused["detail"]
    other = {"components": [{"name": "s", "type": "step_penalty", "weight": 1}]}
    put_spec(project=project, endpoint_name="e", spec=other, by=None)
    waiting = start_dry_run(program=program, by=None)
    page = researcher_client.post(reverse("reward_programs:program-delete", args=["desk", program.pk]))
    assert page.url == reverse("reward_programs:program-detail", args=["desk", program.pk])
    assert "has not ended" in researcher_client.get(page.url).content.decode()
    done(waiting)
    page = researcher_client.post(reverse("reward_programs:program-delete", args=["desk", program.pk]))
    assert page.url == reverse("reward_programs:program-list", args=["desk"])
    program.refresh_from_db()
    assert (program.code, program.jobs.count()) == ("", 0)
    assert AuditEvent.objects.filter(verb="reward_program.deleted", target="short@1").exists()
    call("GET", f"/reward-programs/{program.pk}")
    assert call.status == 404 and call("GET", "/reward-programs")["items"] == []
    with pytest.raises(DomainError, match="There is no reward program desk/short"):
        put_spec(project=project, endpoint_name="e", spec=spec("short@1"), by=None)
    again = create_reward_program(project=project, name="short", code=GOOD, by=None)
    assert again.version == 2, "a number stands for one text"
    call("DELETE", f"/reward-programs/{again.pk}")
    assert call.status == 204
    rollback(endpoint=Endpoint.objects.get(name="e"), by=None)


def test_versions_are_compared(researcher_client, project) -> None:
    first = create_reward_program(project=project, name="short", code=GOOD, by=None)
    with pytest.raises(Conflict, match="has the same code"):
        create_reward_program(project=project, name="short", code=GOOD, by=None)
    second = create_reward_program(
        project=project, name="short", code=GOOD.replace("-float", "+float"), by=None
    )
    assert (first.version, second.version) == (1, 2)
    page = researcher_client.get(reverse("reward_programs:program-detail", args=["desk", second.pk]))
    assert CodeLine("-", "    return -float(len(trajectory['steps']))") in page.context["difference"]
    assert CodeLine("+", "    return +float(len(trajectory['steps']))") in page.context["difference"]
    back = researcher_client.get(
        reverse("reward_programs:program-detail", args=["desk", first.pk]), {"against": second.pk}
    )
    assert CodeLine("+", "    return -float(len(trajectory['steps']))") in back.context["difference"]
    begun = researcher_client.get(
        reverse("reward_programs:program-create", args=["desk"]), {"from": second.pk}
    )
    assert begun.context["form"]["code"].value() == second.code
    assert researcher_client.get(reverse("reward_programs:program-list", args=["desk"])).status_code == 200


def test_errors_are_at_their_fields(researcher_client, project) -> None:
    address = reverse("reward_programs:program-create", args=["desk"])
    page = researcher_client.post(address, {"name": "short", "code": "import os\n" + GOOD})
    assert page.status_code == 422
    assert "Line 1: the module os is not available" in page.context["form"].errors["code"][0]
    page = researcher_client.post(address, {"name": "no name", "code": GOOD})
    assert "cannot be the name" in page.context["form"].errors["name"][0]
    assert not RewardProgramVersion.objects.exists()


def test_the_api(project, feedback) -> None:
    call = ApiCaller(project, Scope.ADMIN)
    made = call("POST", "/reward-programs", {"name": "short", "code": GOOD})
    assert call.status == 201
    assert (made["name"], made["origin"], made["deployable"]) == ("desk/short@1", "person", False)
    job = call("POST", f"/reward-programs/{made['id']}/dry-runs", {"sample": 5})
    assert (call.status, job["state"], job["program"]) == (201, "queued", "desk/short@1")
    waiting = call("POST", f"/reward-programs/{made['id']}/dry-runs", {})["id"]
    assert call("POST", f"/reward-program-jobs/{waiting}/cancel")["state"] == "cancelled"
    done(RewardProgramJob.objects.get(pk=job["id"]))
    assert call("GET", f"/reward-program-jobs/{job['id']}")["result"]["trajectories"] == 5
    assert call("GET", f"/reward-programs/{made['id']}")["deployable"]
    call("POST", f"/reward-programs/{made['id']}/accept")
    assert call.status == 409
    call("POST", "/reward-programs", {"name": "short", "code": "x"})
    assert (call.status, RewardProgramVersion.objects.count()) == (422, 1)
    assert [row["version"] for row in call.all_pages("/reward-programs", 1)] == [1]
    assert Trajectory.objects.exists()


def test_unchanged_lines_far_from_a_change_are_left_out() -> None:
    before = "\n".join(f"line {number}" for number in range(20))
    after = before.replace("line 9\n", "line nine\n")
    marks = "".join(line.mark for line in changed_lines(before, after))
    assert marks == "…   -+   …"
    assert changed_lines(before, before) == [CodeLine("…")]
    assert [line.mark for line in changed_lines("", "a")] == ["+"]
