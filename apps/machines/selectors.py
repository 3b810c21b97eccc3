"""Reads of machines: which are live, and whose key a machine sends."""

from datetime import timedelta

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from apps.accounts.models import Membership, Project, Role
from apps.accounts.selectors import hash_of
from apps.core.distributions import installed_version
from apps.machines.models import Machine, MachineJob, MachineJobState
from workers.launch.machine_calls import training_code_hash


def live_machines() -> QuerySet[Machine]:
    """Not revoked, and the person who made the token may still make one: as keys end when their owner leaves."""
    role = Membership.objects.filter(
        project=OuterRef("project"), user=OuterRef("joined_by"), role__in=(Role.RESEARCHER, Role.OWNER)
    ).values("role")
    by_member = Q(joined_by__is_active=True, joiner_role__isnull=False)
    machines = Machine.objects.select_related("project").annotate(joiner_role=Subquery(role))
    return machines.filter(by_member | Q(joined_by=None), revoked_at=None)


def machines_for(project: Project) -> QuerySet[Machine]:
    """Live machines that take runs of the project."""
    return live_machines().filter(Q(project=project) | Q(project=None))


def machine_with_key(key: str) -> Machine | None:
    return live_machines().filter(hash=hash_of(key)).first()


def has_machines() -> bool:
    return Machine.objects.exists()


def is_current(machine: Machine) -> bool:
    """Whether it trains with the code of this installation."""
    return machine.version == installed_version() and machine.code_hash == training_code_hash()


def may_write(job_name: str) -> bool:
    """Whether a machine that may trains this job now."""
    return MachineJob.objects.filter(
        name=job_name, state=MachineJobState.RUNNING, machine__in=live_machines()
    ).exists()


def why_it_waits(job: MachineJob) -> str:
    """What a queued job waits for, in words."""
    machines = list(machines_for(job.project))
    if not machines:
        return "no machine is joined to this project any more; join one (docs/machines.md)"
    heard = timezone.now() - timedelta(seconds=settings.MACHINE_LEASE_SECONDS)
    machines = [machine for machine in machines if machine.last_seen_at >= heard]
    if not machines:
        return "no joined machine was heard of recently; start `touchstone join` there"
    machines = [machine for machine in machines if is_current(machine)]
    if not machines:
        return f"joined machines have other versions than {installed_version()} of this installation"
    machines = [machine for machine in machines if machine.gpus >= job.gpus]
    if not machines:
        return f"no joined machine has {job.gpus} GPUs"
    return "waits for a machine that trains another run"
