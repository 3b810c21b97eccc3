"""Hindsight tasks are proposed by a language model, edited, and accepted or rejected by a person."""

from apps.accounts.actors import Actor
from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.hindsight.kind import HINDSIGHT, HindsightOptions
from apps.hindsight.models import HindsightProposal, HindsightTask
from apps.llm.models import LLMConnection
from apps.proposals import services as proposals
from workers.hindsight.relabelled import LONGEST_TASK


def start_hindsight_proposal(
    *, project: Project, llm_connection: LLMConnection, options: HindsightOptions, by: Actor
) -> HindsightProposal:
    """Queue it. Raises DomainError."""
    return proposals.start(HINDSIGHT, project=project, llm_connection=llm_connection, options=options, by=by)


def edit_hindsight_task(*, own: HindsightTask, text: str, by: Actor) -> HindsightTask:
    """The text waits for a person again. Raises DomainError."""
    return proposals.edit(HINDSIGHT, own, {"text": checked_task_text(text)}, by)


def accept_hindsight_task(*, own: HindsightTask, by: Actor) -> HindsightTask:
    """The metadata of the trajectory has the text as reached from now on, and new dataset versions can have it as a
    demonstration. Raises Forbidden where no person accepts it, Conflict where it is accepted already."""
    return proposals.accept(HINDSIGHT, own, by)


def reject_hindsight_task(*, own: HindsightTask, by: Actor) -> HindsightTask:
    """What was accepted leaves the metadata of the trajectory. Frozen dataset versions keep it. Raises Forbidden,
    Conflict."""
    return proposals.reject(HINDSIGHT, own, by)


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
