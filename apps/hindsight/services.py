"""Hindsight tasks are proposed by a language model, edited, and accepted or rejected by a person."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db import transaction
from django.utils import timezone

from apps.accounts.actors import Actor, person_of, require_person
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.hindsight.models import HindsightProposal, HindsightTask
from apps.hindsight.selectors import trajectories_without_task
from apps.llm.models import LLMConnection
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import parse_filter
from apps.trajectories.models import Trajectory
from workers.hindsight.relabelled import LONGEST_TASK
from workers.schema.conditions import with_reached, without_reached

ADVANCE = "apps.hindsight.tasks.advance_hindsight"
DEFAULT_TRAJECTORIES, MAX_TRAJECTORIES = 50, 500
_State = HindsightTask.State


class HindsightOptions(msgspec.Struct, frozen=True, kw_only=True):
    """filter: of the trajectories. most: how many of them, the newest."""

    filter: str = ""
    most: int = DEFAULT_TRAJECTORIES


@transaction.atomic
def start_hindsight_proposal(
    *, project: Project, llm_connection: LLMConnection, options: HindsightOptions, by: Actor
) -> HindsightProposal:
    """Queue it. Raises DomainError."""
    if not 1 <= options.most <= MAX_TRAJECTORIES:
        raise DomainError(
            f"{options.most} trajectories; choose 1 to {MAX_TRAJECTORIES}.", pointer="/most", status=422
        )
    if llm_connection.project_id != project.pk:
        raise DomainError(
            "The LLM connection belongs to another project.", pointer="/llm_connection", status=404
        )
    filter = parse_filter(options.filter)
    options = msgspec.structs.replace(options, filter=filter.query)
    trajectories = trajectories_without_task(filter_trajectories(project, filter), options.most)
    if not trajectories:
        raise DomainError(
            "Every one of these trajectories has a hindsight task. Change the filter, or reject one to have it "
            "proposed again.",
            pointer="/filter",
        )
    proposal = HindsightProposal.objects.create(
        project=project,
        llm_connection=llm_connection,
        options=msgspec.to_builtins(options),
        trajectories=trajectories,
        created_by=person_of(by),
    )
    proposal.refresh_from_db(fields=["number"])
    record_audit(
        project=project,
        actor=by,
        verb="hindsight.proposal_started",
        target=llm_connection.name,
        data={**proposal.options, "trajectories": len(trajectories)},
    )
    job_queue.nudge_on_commit(ADVANCE)
    return proposal


def store_proposed_tasks(proposal: HindsightProposal, lines: Iterable[Mapping[str, Any]]) -> None:
    """Lines of `found.jsonl`. A text that was accepted, edited or proposed meanwhile stays. Raises ClaimLost."""
    with job_queue.fenced(proposal):
        problems = dict(proposal.result.get("problems", {}))
        for line in lines:
            if "problem" in line:
                problems[str(line["trajectory"])] = line["problem"]
                continue
            rows = Trajectory.objects.select_for_update().filter(project=proposal.project_id)
            trajectory = rows.filter(pk=int(line["trajectory"])).first()
            if trajectory is None:
                continue
            values = {"proposal": proposal, "text": line["task"], "evidence": line["evidence"]}
            own, is_new = HindsightTask.objects.get_or_create(
                trajectory=trajectory, defaults=values | {"project_id": proposal.project_id}
            )
            if not is_new and own.state == _State.REJECTED:
                own.proposal, own.text, own.evidence = proposal, line["task"], line["evidence"]
                own.state, own.decided_at, own.decided_by = _State.PROPOSED, None, None
                own.save()
        proposal.result["problems"] = problems
        proposal.save(update_fields=["result"])


@transaction.atomic
def edit_hindsight_task(*, own: HindsightTask, text: str, by: Actor) -> HindsightTask:
    """The text waits for a person again. Raises DomainError."""
    text = checked_task_text(text)
    locked = _lock(own)
    locked.text, locked.state = text, _State.PROPOSED
    locked.decided_at = locked.decided_by = None
    locked.save()
    _record(locked, by, "edited")
    return locked


@transaction.atomic
def accept_hindsight_task(*, own: HindsightTask, by: Actor) -> HindsightTask:
    """The metadata of the trajectory has the text as reached from now on, and new dataset versions can have it as a
    demonstration. Raises Forbidden where no person accepts it, Conflict where it is accepted already."""
    person = require_person(by, "accept a hindsight task")
    locked = _lock(own)
    if locked.state == _State.ACCEPTED:
        raise Conflict("This hindsight task is accepted already.")
    _set_reached(locked, locked.text)
    locked.state, locked.decided_at, locked.decided_by = _State.ACCEPTED, timezone.now(), person
    locked.save()
    _record(locked, by, "accepted")
    return locked


@transaction.atomic
def reject_hindsight_task(*, own: HindsightTask, by: Actor) -> HindsightTask:
    """What was accepted leaves the metadata of the trajectory. Frozen dataset versions keep it. Raises Forbidden,
    Conflict."""
    person = require_person(by, "reject a hindsight task")
    locked = _lock(own)
    if locked.state == _State.REJECTED:
        raise Conflict("This hindsight task is rejected already.")
    _set_reached(locked, "")
    locked.state, locked.decided_at, locked.decided_by = _State.REJECTED, timezone.now(), person
    locked.save()
    _record(locked, by, "rejected")
    return locked


def checked_task_text(text: str) -> str:
    """Raises DomainError."""
    text = text.strip()
    if not text or len(text) > LONGEST_TASK:
        what = (
            f"{len(text):,} characters; write at most {LONGEST_TASK:,}"
            if text
            else "empty; write what was done"
        )
        raise DomainError(f"The task is {what}.", pointer="/task", status=422)
    return text


def _set_reached(own: HindsightTask, text: str) -> None:
    """text: empty to remove what was accepted before."""
    trajectory = Trajectory.objects.select_for_update().get(pk=own.trajectory_id)
    metadata = trajectory.metadata
    if own.accepted_text:
        metadata = without_reached(metadata, own.accepted_text)
    if text:
        metadata = with_reached(metadata, text)
    if metadata != trajectory.metadata:
        trajectory.metadata = metadata
        trajectory.save(update_fields=["metadata"])
    own.accepted_text = text


def _lock(own: HindsightTask) -> HindsightTask:
    rows = HindsightTask.objects.select_for_update(of=("self",)).select_related("project", "trajectory__task")
    return rows.get(pk=own.pk)


def _record(own: HindsightTask, by: Actor, verb: str) -> None:
    record_audit(
        project=own.project,
        actor=by,
        verb=f"hindsight.{verb}",
        target=str(own.trajectory.number),
        data={"characters": len(own.text)},
    )
