"""Reference versions that someone chose. Without scipy, for the archive of a project."""

from django.db import transaction
from django.utils import timezone

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.agent_drift.models import AgentReference
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory


def chosen_references(project: Project) -> dict[str, str]:
    """By agent, the version that someone chose."""
    rows = AgentReference.objects.filter(project=project)
    return dict(rows.values_list("agent_name", "agent_version"))


@transaction.atomic
def choose_reference(*, project: Project, agent: str, version: str | None, by: Actor) -> None:
    """Compare later versions of the agent with this one; with the oldest where None. Raises DomainError for an agent
    that the project does not have, and for a version that its agent does not have."""
    rows = Trajectory.objects.filter(project=project, agent_name=agent)
    if not rows.exists():
        message = f"There is no agent {agent[:100]!r} in this project."
        raise DomainError(message, pointer="/agent", status=422)
    if version is None:
        AgentReference.objects.filter(project=project, agent_name=agent).delete()
    else:
        if not rows.filter(agent_version=version).exists():
            raise DomainError(
                f"{agent or 'The agent without a name'} has no version {version[:100]!r}.",
                pointer="/version",
                status=422,
            )
        AgentReference.objects.update_or_create(
            project=project,
            agent_name=agent,
            defaults={"agent_version": version, "chosen_by": person_of(by), "chosen_at": timezone.now()},
        )
    record_audit(
        project=project,
        actor=by,
        verb="agent.reference_chosen",
        target=agent[:200],
        data={"version": version},
    )
