"""Proposals are started, stored, edited, accepted and rejected: the same for every kind of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.db import transaction

from apps.accounts.actors import Actor, person_of, require_person
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.jobs import job_queue
from apps.llm.models import LLMConnection
from apps.proposals.kinds import JobT, ProposalKind, ProposalOptionsLike, RowT
from apps.proposals.models import Proposed
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import parse_filter

_State = Proposed.State


@transaction.atomic
def start(
    kind: ProposalKind[JobT, RowT],
    *,
    project: Project,
    llm_connection: LLMConnection,
    options: ProposalOptionsLike,
    by: Actor,
) -> JobT:
    """Queue it. Raises DomainError."""
    if not 1 <= options.most <= kind.most:
        raise DomainError(
            f"{options.most} {kind.about_nouns}; choose 1 to {kind.most}.", pointer="/most", status=422
        )
    if llm_connection.project_id != project.pk:
        raise DomainError(
            "The LLM connection belongs to another project.", pointer="/llm_connection", status=404
        )
    filter = parse_filter(options.filter)
    keys = kind.choose(project, filter_trajectories(project, filter), options.most)
    if not keys:
        raise DomainError(kind.none_left, pointer="/filter")
    proposal = kind.job._default_manager.create(
        project=project,
        llm_connection=llm_connection,
        options=msgspec.to_builtins(options) | {"filter": filter.query},
        created_by=person_of(by),
        **{kind.job.keys_field: keys},
    )
    proposal.refresh_from_db(fields=["number"])
    record_audit(
        project=project,
        actor=by,
        verb=f"{kind.verb}.proposal_started",
        target=llm_connection.name,
        data={**proposal.options, kind.job.keys_field: len(keys)},
    )
    job_queue.nudge_on_commit(kind.advance)
    return proposal


def store(kind: ProposalKind[JobT, RowT], proposal: JobT, lines: Iterable[Mapping[str, Any]]) -> None:
    """Lines of the child's `found.jsonl`. What was accepted, edited or proposed meanwhile stays. Raises ClaimLost."""
    with job_queue.fenced(proposal):
        problems = dict(proposal.result.get("problems", {}))
        for line in lines:
            key = line[kind.about_field]
            if "problem" in line:
                problems[str(key)] = line["problem"]
                continue
            rows = kind.about._default_manager.select_for_update()
            about = rows.filter(project=proposal.project_id, pk=int(key)).first()
            if about is None:
                continue
            values = kind.values(line) | {"proposal": proposal}
            own, is_new = kind.proposed._default_manager.get_or_create(
                **{kind.about_field: about}, defaults=values | {"project_id": proposal.project_id}
            )
            if not is_new and own.state == _State.REJECTED:
                for name, value in values.items():
                    setattr(own, name, value)
                own.wait()
                own.save()
        proposal.result["problems"] = problems
        proposal.save(update_fields=["result"])


@transaction.atomic
def edit(kind: ProposalKind[JobT, RowT], own: RowT, values: Mapping[str, Any], by: Actor) -> RowT:
    """values: fields of the row, checked. It waits for a person again."""
    locked = _lock(kind, own)
    for name, value in values.items():
        setattr(locked, name, value)
    locked.wait()
    locked.save()
    _record(kind, locked, by, "edited")
    return locked


@transaction.atomic
def accept(kind: ProposalKind[JobT, RowT], own: RowT, by: Actor) -> RowT:
    """It is used from now on. Raises Forbidden where no person accepts it, Conflict where it is accepted already."""
    person = require_person(by, f"accept {kind.noun}")
    locked = _lock(kind, own)
    if locked.state == _State.ACCEPTED:
        raise Conflict(f"{kind.this} accepted already.")
    kind.use(locked)
    locked.decide(_State.ACCEPTED, person)
    locked.save()
    _record(kind, locked, by, "accepted")
    return locked


@transaction.atomic
def reject(kind: ProposalKind[JobT, RowT], own: RowT, by: Actor) -> RowT:
    """It is used no longer. Raises Forbidden, Conflict."""
    person = require_person(by, f"reject {kind.noun}")
    locked = _lock(kind, own)
    if locked.state == _State.REJECTED:
        raise Conflict(f"{kind.this} rejected already.")
    kind.withdraw(locked)
    locked.decide(_State.REJECTED, person)
    locked.save()
    _record(kind, locked, by, "rejected")
    return locked


def get_job(kind: ProposalKind[JobT, RowT], project: Project, pk: int) -> JobT:
    """Raises NotFound."""
    rows = kind.job._default_manager.filter(project=project).select_related("project", "llm_connection")
    found = rows.filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no proposal of {kind.job.what} {pk} in this project.")
    return found


def _lock(kind: ProposalKind[JobT, RowT], own: RowT) -> RowT:
    rows = kind.proposed._default_manager.select_for_update(of=("self",)).select_related(*kind.related)
    return rows.get(pk=own.pk)


def _record(kind: ProposalKind[JobT, RowT], own: RowT, by: Actor, verb: str) -> None:
    target, data = kind.audit(own)
    record_audit(project=own.project, actor=by, verb=f"{kind.verb}.{verb}", target=target[:200], data=data)
