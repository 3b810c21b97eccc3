"""What people and webhooks hear of jobs that ended. Apps register their jobs in AppConfig.register."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Project, Role, User
from apps.core.jobs.job_queue import Job, JobState
from apps.core.registries import NamedRegistry, Registry
from apps.inbox.models import NotificationEvent
from apps.inbox.services import notify_people


@dataclass(frozen=True, slots=True)
class JobNotice:
    """A job for people. name: such as "The export of Support@3". path: the page that shows it."""

    project: Project
    user: User | None
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that succeeded or failed. key: names it, and its attempt."""

    notice: JobNotice
    key: str
    succeeded: bool
    error: str


_NOTICES: NamedRegistry[type[Any], Callable[[Any], JobNotice]] = NamedRegistry()
LISTENERS: Registry[Callable[[EndedJob], object]] = Registry()


def register(model: type[Any], describe: Callable[[Any], JobNotice]) -> None:
    """Have the end of every job of this model reported."""
    _NOTICES[model] = describe


def report_end(job: Job) -> None:
    """Within the transaction that ends the job. A cancelled job is no news: a person did it."""
    describe = _NOTICES.get(type(job))
    if describe is None or job.state not in (JobState.SUCCEEDED, JobState.FAILED):
        return
    key = f"{job._meta.label_lower}:{job.pk}:{job.attempt}:{job.state}"
    report(EndedJob(describe(job), key, job.state == JobState.SUCCEEDED, job.error))


def report(ended: EndedJob) -> None:
    for listener in LISTENERS:
        listener(ended)


def notify_starter(ended: EndedJob) -> None:
    """The person who started it."""
    notice = ended.notice
    if notice.user is None:
        return
    notify_people(
        project=notice.project,
        users=[notice.user],
        event=NotificationEvent.JOB_SUCCEEDED if ended.succeeded else NotificationEvent.JOB_FAILED,
        key=ended.key,
        title=f"{notice.name} {'finished' if ended.succeeded else 'failed'}",
        path=notice.path,
        detail=ended.error,
        least_role=Role.RESEARCHER,
    )
