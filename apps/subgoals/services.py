"""Subgoals are proposed by a language model, edited, and accepted or rejected by a person."""

from collections.abc import Sequence
from typing import Any

import msgspec

from apps.accounts.actors import Actor
from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.llm.models import LLMConnection
from apps.proposals import services as proposals
from apps.subgoals.kind import SUBGOALS, ProposalOptions
from apps.subgoals.models import SubgoalProposal, TaskSubgoals
from workers.errors import RewardError
from workers.schema.decode import convert
from workers.subgoals.subgoal_lists import Subgoal, require_subgoals


def start_proposal(
    *, project: Project, llm_connection: LLMConnection, options: ProposalOptions, by: Actor
) -> SubgoalProposal:
    """Queue it. Raises DomainError."""
    return proposals.start(SUBGOALS, project=project, llm_connection=llm_connection, options=options, by=by)


def edit_subgoals(*, own: TaskSubgoals, subgoals: Sequence[Any], by: Actor) -> TaskSubgoals:
    """subgoals: as decoded JSON. The list waits for a person again. Raises DomainError at the bad field."""
    checked = checked_subgoals(subgoals)
    return proposals.edit(SUBGOALS, own, {"subgoals": msgspec.to_builtins(checked)}, by)


def accept_subgoals(*, own: TaskSubgoals, by: Actor) -> TaskSubgoals:
    """The metadata of the task has them from now on, where the component `subgoals` reads them. Raises Forbidden where
    no person accepts them, Conflict where they are accepted already."""
    return proposals.accept(SUBGOALS, own, by)


def reject_subgoals(*, own: TaskSubgoals, by: Actor) -> TaskSubgoals:
    """They leave the metadata of the task too, where they were accepted. Raises Forbidden, Conflict."""
    return proposals.reject(SUBGOALS, own, by)


def checked_subgoals(subgoals: Sequence[Any]) -> list[Subgoal]:
    """Raises DomainError for what is no list of subgoals."""
    try:
        found = [convert(each, Subgoal) for each in subgoals]
        require_subgoals(found)
    except RewardError as error:
        raise DomainError(
            error.message[0].upper() + error.message[1:], pointer=error.pointer or "/subgoals", status=422
        ) from None
    return found
