"""Drafts by a language model: tried, criticised, revised, and accepted by a person."""

import json
from collections.abc import Iterator

import pytest
from django.urls import reverse

from apps.accounts.models import Scope
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.llm.models import LLMConnection
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.reward_programs import tasks
from apps.reward_programs.models import RewardProgramJob, RewardProgramVersion
from apps.reward_programs.services import DraftOptions, start_draft
from apps.trajectories.models import Step, Trajectory, TrajectoryComment
from apps.trajectories.services import set_masking
from tests.api_calls import ApiCaller
from tests.reward_studies import conftest as desk
from tests.workers.llm.scripted import Body, Script, scripted

# Real children: the interpreter of a process that has run programs does not survive a fork.
pytestmark = pytest.mark.usefixtures("own_home")
project, researcher_client, feedback, key = desk.project, desk.researcher_client, desk.feedback, desk.key

CRASHES = "def reward(trajectory):\n    return trajectory['moves']\n"
PAYS_WAITING = "def reward(trajectory):\n    return float(len(trajectory['steps']))\n"
GOOD = "def reward(trajectory):\n    return 'thank' in trajectory['steps'][-1]['message'] and 1.0 or 0.0\n"


def answer(body: Body) -> str:
    """Of a first draft, one that crashes; of its revision, one that pays waiting, as the critic sees by the values."""
    system, data = (message["content"] for message in body["messages"])
    if system.startswith("You write"):
        return json.dumps({"code": CRASHES})
    if system.startswith("You correct"):
        return json.dumps({"code": PAYS_WAITING if "KeyError" in data else GOOD})
    rows = [json.loads(line) for line in data.splitlines() if line.startswith('{"agent_steps"')]
    longest, shortest = (pick(rows, key=lambda row: row["agent_steps"]) for pick in (max, min))
    pays_waiting = longest["value"] > shortest["value"] + 1
    return json.dumps({"problem": "It pays waiting." if pays_waiting else None})


@pytest.fixture
def connection(project, feedback, settings) -> Iterator[LLMConnection]:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    with scripted(Script(answer)) as url:
        spec = LLMConnectionSpec(name="writer", base_url=url, model="rules")
        yield create_llm_connection(project=project, spec=spec, key="sk-canary", by=None)


def done(job: RewardProgramJob) -> RewardProgramJob:
    tasks.advance_reward_programs()
    job.refresh_from_db()
    return job


def test_the_trial_and_the_critic_find_what_is_wrong(researcher_client, project, connection) -> None:
    values = {"name": "thanks", "llm_connection": connection.pk, "task": "Pay for thanks.", "comments": ""}
    page = researcher_client.post(reverse("reward_programs:program-draft", args=["desk"]), values)
    assert page.status_code == 302
    job = done(RewardProgramJob.objects.get())
    assert (job.state, job.error) == (JobState.SUCCEEDED, "")
    assert job.result["attempts"] == [
        {"found_by": "trial", "problem": None},
        {"found_by": "critic", "problem": "It pays waiting."},
        {"found_by": None, "problem": None},
    ]
    assert job.result["usage"]["calls"] == 5
    program = RewardProgramVersion.objects.get()
    assert (program.code, program.origin, program.accepted_at) == (GOOD, "draft", None)
    shown = researcher_client.get(page.url).content.decode()
    assert "It pays waiting." in shown and "Read thanks@1" in shown
    researcher_client.post(reverse("reward_programs:program-accept", args=["desk", program.pk]))
    program.refresh_from_db()
    assert program.accepted_by is not None


def test_the_critic_reads_masked_excerpts_and_stored_comments(project, connection, feedback) -> None:
    """Excerpts of what failed and was paid, with addresses masked; none where they are not wanted."""
    read: list[str] = []

    def reads(body: Body) -> str:
        system, data = (message["content"] for message in body["messages"])
        read.append(data)
        if system.startswith("You look"):
            quote = "wait 0 well wait 1 well answer" if len(read) < 5 else "It pays waiting."
            return json.dumps({"problem": quote})
        return json.dumps({"code": GOOD if "pays" in data else PAYS_WAITING})

    rows = Trajectory.objects.filter(project=project).order_by("pk")
    commented = rows[0]
    Trajectory.objects.filter(project=project).update(success=False)
    Step.objects.filter(trajectory__project=project, source="user").update(
        message=[{"type": "text", "text": "I am ann@example.org, where is it?"}]
    )
    set_masking(project=project, detectors=["emails"], by=None)
    TrajectoryComment.objects.create(
        project=project, trajectory=commented, text="ann@example.org was kept waiting.", sign=-1, step=1
    )
    with scripted(Script(reads)) as url:
        LLMConnection.objects.filter(pk=connection.pk).update(base_url=url)
        connection.refresh_from_db()
        options = DraftOptions(task="Pay for thanks.", stored_comments=True)
        job = done(
            start_draft(project=project, name="thanks", llm_connection=connection, options=options, by=None)
        )
        assert (job.state, job.error) == (JobState.SUCCEEDED, "")
        assert job.result["stored_comments"] == 1
        assert all('"step 1, bad: [EMAIL_1] was kept waiting."' in data for data in read)
        assert not any("ann@example.org" in data for data in read)
        critiques = [data for data in read if "Excerpts, a trajectory" in data]
        assert critiques and all("I am [EMAIL_1], where is it?" in data for data in critiques)
        assert all(data.partition("Excerpts, a")[2].count('"excerpt": [') == 2 for data in critiques)
        assert all(len(data) < 20_000 for data in critiques)
        read.clear()
        without = DraftOptions(task="Pay for thanks, please.", excerpts=False)
        done(start_draft(project=project, name="other", llm_connection=connection, options=without, by=None))
        assert read and not any("Excerpts" in data or "where is it?" in data for data in read)


def test_without_a_stored_comment_nothing_is_asked(project, connection) -> None:
    TrajectoryComment.objects.all().delete()
    options = DraftOptions(task="Pay for thanks.", stored_comments=True)
    job = start_draft(project=project, name="thanks", llm_connection=connection, options=options, by=None)
    assert "has a comment" in done(job).error


def test_what_cannot_be_drafted_is_refused(project, connection) -> None:
    def start(**more: object) -> RewardProgramJob:
        options = DraftOptions(**({"task": "Pay for thanks."} | more))
        return start_draft(
            project=project, name="thanks", llm_connection=connection, options=options, by=None
        )

    with pytest.raises(DomainError, match="Describe the task"):
        start(task=" ")
    with pytest.raises(DomainError, match="has no version 77"):
        start(revises=77)
    nothing = done(start(filter="agent=none"))
    assert (nothing.state, "no draft can be tried" in nothing.error) == (JobState.FAILED, True)
    waiting = start()
    connection.delete()
    assert "was deleted" in done(waiting).error


def test_the_api_drafts(project, connection) -> None:
    call = ApiCaller(project, Scope.ADMIN)
    body = {"name": "thanks", "llm_connection": "writer", "task": "Pay for thanks."}
    job = call("POST", "/reward-program-drafts", body)
    assert (call.status, job["kind"], job["program"]) == (201, "draft", None)
    done(RewardProgramJob.objects.get())
    assert call("GET", f"/reward-program-jobs/{job['id']}")["program"] == "desk/thanks@1"
    first = RewardProgramVersion.objects.get()
    again = call("POST", "/reward-program-drafts", body | {"revises": first.pk, "comments": "Pay less."})
    assert call.status == 201
    assert "has the same code" in done(RewardProgramJob.objects.get(pk=again["id"])).error
    call("POST", "/reward-program-drafts", body | {"llm_connection": "none"})
    assert call.status == 404
