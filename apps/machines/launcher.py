"""`--on machine`: joined machines, which ask for jobs and need not be reached."""

from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.storage.encryption import encrypted
from apps.machines.models import MachineJob, MachineJobState
from apps.machines.selectors import live_machines, machines_for, why_it_waits
from workers.launch.host_run import STOPPED
from workers.launch.job import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    Handle,
    JobLog,
    JobPhase,
    JobStatus,
    LaunchedJob,
)

NAME = "machine"


class MachineLauncher:
    """The handle is {"job": the name of the submission}. The database has the jobs, so every call is answered."""

    name, is_remote = NAME, True

    def submit(self, job: LaunchedJob) -> Handle:
        MachineJob.objects.get_or_create(
            name=job.name,
            defaults={
                "project": Project.objects.get(slug=job.project),
                "run": job.run,
                "files": urlsplit(job.environment[URL_VARIABLE]).path,
                "secret": encrypted(job.secrets[TOKEN_VARIABLE]),
                "processes": job.resources.processes,
                "gpus": job.resources.gpus,
            },
        )
        return {"job": job.name}

    def find(self, name: str) -> Handle | None:
        return {"job": name} if MachineJob.objects.filter(name=name).exists() else None

    def poll(self, handle: Handle) -> JobStatus:
        """A job whose machine was not heard of during a lease is lost from now on, whatever the machine sends later."""
        before = timezone.now() - timedelta(seconds=settings.MACHINE_LEASE_SECONDS)
        with transaction.atomic():
            jobs = MachineJob.objects.select_for_update(of=("self",)).select_related("machine", "project")
            job = jobs.filter(name=handle["job"]).first()
            if job is None:
                return JobStatus(JobPhase.PREEMPTED, "the job was deleted with its machine")
            if job.state == MachineJobState.RUNNING and job.heartbeat_at and job.heartbeat_at < before:
                job.state = MachineJobState.LOST
                job.save(update_fields=["state"])
        return _status(job)

    def cancel(self, handle: Handle) -> None:
        jobs = MachineJob.objects.filter(name=handle["job"])
        if not jobs.filter(state=MachineJobState.QUEUED).update(state=MachineJobState.CANCELLED):
            jobs.update(cancel_requested=True)

    def kill(self, handle: Handle) -> None:
        """Its machine ends it with the next heartbeat, and what it writes until then is refused."""
        jobs = MachineJob.objects.filter(name=handle["job"])
        jobs.filter(state__in=(MachineJobState.QUEUED, MachineJobState.RUNNING)).update(
            state=MachineJobState.CANCELLED
        )

    def logs(self, handle: Handle, offset: int = 0) -> JobLog:
        log = MachineJob.objects.filter(name=handle["job"]).values_list("log", flat=True).first() or ""
        content = log.encode()
        return JobLog(content[offset:], max(offset, len(content)))

    def forget(self, handle: Handle) -> None:
        MachineJob.objects.filter(name=handle["job"]).delete()

    def check(self) -> str:
        machines = list(live_machines())
        heard = sum(not machine.is_silent for machine in machines)
        return f"{len(machines)} joined, {heard} heard of in the last {settings.MACHINE_LEASE_SECONDS} s"


def require_machine(project: Project, gpus: int) -> None:
    """Raises DomainError where no joined machine could ever take a run of the project with this number of GPUs."""
    found = list(machines_for(project))
    if not found:
        raise DomainError(
            f"No machine is joined to {project.slug}; create a join token on the page Machines (docs/machines.md).",
            pointer="/on",
        )
    most = max(machine.gpus for machine in found)
    if most < gpus:
        raise DomainError(
            f"The run asks for {gpus} GPU{'s' if gpus > 1 else ''}, and joined machines have at most {most}; set gpus "
            f"to {most}, or join another machine.",
            pointer="/gpus",
        )


def _status(job: MachineJob) -> JobStatus:
    where = job.machine.name if job.machine is not None else "no machine"
    if job.state == MachineJobState.QUEUED:
        return JobStatus(JobPhase.PENDING, why_it_waits(job))
    if job.state == MachineJobState.RUNNING:
        return JobStatus(JobPhase.RUNNING, f"on {where}")
    if job.state == MachineJobState.LOST:
        return JobStatus(JobPhase.PREEMPTED, f"the machine {where} was lost")
    if job.state == MachineJobState.CANCELLED:
        return JobStatus(JobPhase.CANCELLED)
    return _ended(job, where)


def _ended(job: MachineJob, where: str) -> JobStatus:
    status = job.exit_status
    if status == 0:
        return JobStatus(JobPhase.SUCCEEDED, "", 0)
    if status == STOPPED or status in (-2, -15):  # asked to stop before or while it trained
        if job.cancel_requested:
            return JobStatus(JobPhase.CANCELLED, "", status)
        return JobStatus(JobPhase.PREEMPTED, f"the machine {where} was stopped", status)
    if status is not None and status < 0:
        reason = f"signal {-status} ended the job on {where}; did it use more memory than there is?"
        return JobStatus(JobPhase.FAILED, reason, status)
    return JobStatus(JobPhase.FAILED, "", status)
