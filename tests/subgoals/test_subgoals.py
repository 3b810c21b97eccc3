"""Subgoals are proposed by a language model, and used once a person has accepted them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import AuditEvent, Membership, Project, Role, Scope
from apps.accounts.services import create_api_key
from apps.core.errors import DomainError, Forbidden
from apps.core.jobs.job_queue import JobState
from apps.llm.models import CachedCompletion, LLMConnection, Spending
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.subgoals import services, tasks
from apps.subgoals.models import SubgoalProposal, TaskSubgoals
from apps.subgoals.services import ProposalOptions, start_proposal
from apps.trajectories.models import Task, Trajectory
from apps.trajectories.selectors import load_trajectories
from tests.api_calls import ApiCaller
from tests.reward_studies import conftest as desk
from tests.workers.llm.scripted import Body, Script, scripted
from workers.engine.rules import rate
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.reference_parts import Subgoals

# Real children, as in tests/reward_programs/test_drafts.py.
pytestmark = pytest.mark.usefixtures("own_home")
project, researcher_client, feedback, key = desk.project, desk.researcher_client, desk.feedback, desk.key

ANSWERED = {"goal": "answered", "expression": "Answer [0-9]+", "weight": 1}
THANKED = {"goal": "thanked", "expression": "(?i)thank", "weight": 3}


def proposed(*subgoals: dict[str, Any]) -> str:
    return json.dumps({"subgoals": list(subgoals)})


class Writer:
    """Garbage first; then an expression that no run has, one that is none, and a list. prompts: what it was asked."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.lists = [proposed(ANSWERED, THANKED)]

    def __call__(self, body: Body) -> str:
        data = body["messages"][1]["content"]
        self.prompts.append(data)
        if "Find parcel 1." in data:
            return "I will not."
        told = len(body["messages"])
        if told == 2:
            return proposed({**ANSWERED, "expression": "no such thing"}, THANKED)
        assert "found in none of the runs that succeeded" in body["messages"][3]["content"]
        return self.lists[0]


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def connection(project: Project, feedback: None, settings: Any, writer: Writer) -> Iterator[LLMConnection]:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    Trajectory.objects.filter(project=project).update(success=True)
    # Of the desk's tasks, two are looked at.
    Task.objects.filter(project=project).exclude(external_id__in=["t0", "t1"]).update(instruction="")
    with scripted(Script(writer)) as url:
        spec = LLMConnectionSpec(name="writer", base_url=url, model="rules")
        yield create_llm_connection(project=project, spec=spec, key="sk-canary", by=None)


def done(proposal: SubgoalProposal) -> SubgoalProposal:
    tasks.advance_subgoals()
    proposal.refresh_from_db()
    return proposal


def share(task: Task) -> float:
    """Of the component, for the task's first stored trajectory with thanks."""
    for content in load_trajectories(
        Trajectory.objects.filter(task=task).values_list("pk", flat=True)
    ).values():
        if "thank you" in str(content):
            return rate(Subgoals(name="s"), ScoreInput(content=content), len).raw
    raise AssertionError("no trajectory has thanks")


def test_from_a_proposal_to_the_reward(
    researcher_client: Client, project: Project, connection: LLMConnection, writer: Writer
) -> None:
    values = {"llm_connection": connection.pk, "filter": "", "most": 50, "with_trajectories": "on"}
    page = researcher_client.post(reverse("subgoals:proposal-create", args=["desk"]), values)
    assert page.status_code == 302
    proposal = done(SubgoalProposal.objects.get())
    assert (proposal.state, proposal.error) == (JobState.SUCCEEDED, "")
    own = TaskSubgoals.objects.get()
    assert (own.task.external_id, own.state, own.subgoals) == (
        "t0",
        "proposed",
        [{**ANSWERED, "weight": 1.0}, {**THANKED, "weight": 3.0}],
    )
    (problem,) = proposal.result["problems"].values()
    assert "no answer that can be used" in problem
    assert proposal.result["usage"]["calls"] == len(writer.prompts) == Spending.objects.get().calls
    assert all("Answer" in data.partition("Runs that")[2] for data in writer.prompts)
    shown = researcher_client.get(page.url).content.decode()
    assert "answered · thanked" in shown and "no answer that can be used" in shown
    with pytest.raises(RewardError, match="no subgoals"):
        share(own.task)
    detail = reverse("subgoals:subgoals-detail", args=["desk", own.pk])
    count = Trajectory.objects.filter(task=own.task).count()
    assert f"{count} of {count}" in researcher_client.get(detail).content.decode()
    refused = researcher_client.post(detail, {"goal-0": "a", "expression-0": "(", "accept": "1"})
    assert refused.status_code == 422
    typed = {"goal-0": "thanked", "expression-0": "(?i)thank", "weight-0": "2"}
    typed |= {"goal-3": "flew", "expression-3": "to the moon"}
    assert researcher_client.post(detail, {**typed, "accept": "1"}).url == detail
    own.refresh_from_db()
    assert own.state == "accepted" and own.decided_by is not None
    task = Task.objects.get(pk=own.task_id)
    assert [goal["weight"] for goal in task.metadata["subgoals"]] == [2.0, 1.0]
    assert share(task) == pytest.approx(2 / 3)
    verbs = set(AuditEvent.objects.values_list("verb", flat=True))
    assert {"subgoals.proposal_started", "subgoals.edited", "subgoals.accepted"} <= verbs
    decide = reverse("subgoals:subgoals-decide", args=["desk", own.pk])
    researcher_client.post(decide, {"reject": "1"})
    assert "subgoals" not in Task.objects.get(pk=own.task_id).metadata
    assert researcher_client.get(reverse("subgoals:subgoals-list", args=["desk"])).status_code == 200


def test_only_a_person_accepts(
    project: Project, connection: LLMConnection, researcher_client: Client
) -> None:
    call = ApiCaller(project, Scope.ADMIN)
    made = call("POST", "/subgoal-proposals", {"llm_connection": "writer"})
    assert (call.status, made["state"], made["tasks"]) == (201, "queued", 2)
    done(SubgoalProposal.objects.get())
    (row,) = call("GET", "/subgoals", state="proposed")["items"]
    edited = call("PUT", f"/subgoals/{row['id']}", {"subgoals": [THANKED]})
    assert (edited["state"], edited["subgoals"]) == ("proposed", [{**THANKED, "weight": 3.0}])
    for word in ("accept", "reject"):
        call("POST", f"/subgoals/{row['id']}/{word}")
        assert call.status == 403
    own = TaskSubgoals.objects.get()
    assert own.state == "proposed" and "subgoals" not in own.task.metadata
    with pytest.raises(Forbidden):
        services.accept_subgoals(own=own, by=None)
    person = Membership.objects.get(project=project, role=Role.RESEARCHER).user
    key = create_api_key(project=project, scopes=[Scope.TRAIN], owner=person)[0]
    services.accept_subgoals(own=own, by=key)
    assert Task.objects.get(pk=own.task_id).metadata["subgoals"] == [{**THANKED, "weight": 3.0}]
    services.edit_subgoals(own=own, subgoals=[ANSWERED], by=None)
    assert Task.objects.get(pk=own.task_id).metadata["subgoals"] == [{**THANKED, "weight": 3.0}]
    refused: tuple[dict[str, Any], ...] = (
        {"subgoals": []},
        {"subgoals": [THANKED, THANKED]},
        {"subgoals": [{"expression": "a*"}]},
    )
    for body in refused:
        call("PUT", f"/subgoals/{row['id']}", body)
        assert call.status == 422


def test_what_is_accepted_stays(project: Project, connection: LLMConnection, writer: Writer) -> None:
    """A second proposal asks for tasks without a list only, and answers are cached."""
    first = done(
        start_proposal(project=project, llm_connection=connection, options=ProposalOptions(), by=None)
    )
    calls = len(writer.prompts)
    second = start_proposal(project=project, llm_connection=connection, options=ProposalOptions(), by=None)
    assert len(first.tasks) == 2 and len(second.tasks) == 1
    done(second)
    assert len(writer.prompts) > calls and TaskSubgoals.objects.count() == 1
    assert CachedCompletion.objects.exclude(trajectory=None).count() == 1
    Task.objects.filter(project=project, external_id="t1").update(metadata={"subgoals": ["typed"]})
    with pytest.raises(DomainError, match="Every task"):
        start_proposal(project=project, llm_connection=connection, options=ProposalOptions(), by=None)
    with pytest.raises(DomainError, match="choose 1 to"):
        start_proposal(project=project, llm_connection=connection, options=ProposalOptions(most=0), by=None)
