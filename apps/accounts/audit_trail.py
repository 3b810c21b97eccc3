"""Appending to the trail of who did what."""

from typing import Any

from apps.accounts.models import ApiKey, AuditEvent, Project, User

COMMAND_LINE = "command line"


def record_audit(
    *,
    project: Project | None,
    actor: User | ApiKey | str | None,
    verb: str,
    target: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """Append to the trail.

    actor: None is the command line, words are a part of the system that acts by itself. verb: past tense, `noun.verb`
    ("key.revoked").
    """
    name = COMMAND_LINE
    if isinstance(actor, str):
        name = actor
    elif actor is not None:
        name = actor.prefix if isinstance(actor, ApiKey) else actor.email
    return AuditEvent.objects.create(
        project=project, actor=name, verb=verb, target=target[:200], data=data or {}
    )
