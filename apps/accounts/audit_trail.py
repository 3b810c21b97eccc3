"""Appending to the trail of who did what.

An event is written with the change it tells of, in the same transaction; right after the commit it gets its place in
the chain (audit_chain.py), so that no one waits for anyone else's transaction.
"""

from typing import Any

from django.db import transaction

from apps.accounts.audit_chain import seal_soon
from apps.accounts.models import ApiKey, AuditEvent, Project, User
from apps.accounts.pseudonyms import person_pseudonym, pseudonymous

COMMAND_LINE = "command line"


@transaction.atomic
def record_audit(
    *,
    project: Project | None,
    actor: User | ApiKey | str | None,
    verb: str,
    target: str = "",
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """Append to the trail. E-mail addresses in it are kept as pseudonyms.

    actor: None is the command line, words are a part of the system that acts automatically. verb: past tense,
    `noun.verb` ("key.revoked").
    """
    event = AuditEvent.objects.create(
        project=project,
        project_slug=project.slug if project is not None else "",
        actor=_actor(actor),
        verb=verb,
        target=pseudonymous(target)[:200],
        data=pseudonymous(data or {}),
    )
    seal_soon()
    return event


def _actor(actor: User | ApiKey | str | None) -> str:
    if actor is None:
        return COMMAND_LINE
    if isinstance(actor, ApiKey):
        return actor.prefix
    if isinstance(actor, str):
        return str(pseudonymous(actor))[:254]
    return person_pseudonym(actor.email)
