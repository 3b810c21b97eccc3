"""The jobs of a project, of all kinds: those that wait or run, those that failed, those that ended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.jobs.job_queue import Job, JobState

MOST_OF_KIND = 5
FAILED_DAYS = 3
_OPEN = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class JobKind:
    """model: label of the model. project_path: the lookup of its project. title, url: of a row. by: its person."""

    model: str
    project_path: str
    title: Callable[[Any], str]
    url: Callable[[Any, str], str]
    by: str = "created_by"
    related: tuple[str, ...] = ()

    def rows(self, project: Project) -> QuerySet[Any]:
        rows = apps.get_model(self.model)._default_manager.filter(**{self.project_path: project})
        return rows.select_related(*self.related, *([self.by] if self.by else []))


@dataclass(frozen=True, slots=True)
class ProjectJob:
    title: str
    url: str
    state: str
    note: str
    done: int | None
    total: int | None
    error: str
    by: str
    at: datetime

    @property
    def percent(self) -> int | None:
        if not self.total or self.done is None:
            return None
        return max(0, min(100, round(100 * self.done / self.total)))


def running_jobs(project: Project) -> list[ProjectJob]:
    """Those that wait or run, the oldest first."""
    found = [
        _project_job(kind, row, project, row.created_at)
        for kind in JOB_KINDS
        for row in kind.rows(project).filter(state__in=_OPEN).order_by("created_at")[:MOST_OF_KIND]
    ]
    return sorted(found, key=lambda job: job.at)


def failed_jobs(project: Project) -> list[ProjectJob]:
    """Of the last days, the newest of each kind, where no later one of the kind succeeded."""
    since = timezone.now() - timedelta(days=FAILED_DAYS)
    found = []
    for kind in JOB_KINDS:
        newest = kind.rows(project).filter(finished_at__gte=since).exclude(state=JobState.CANCELLED)
        row = newest.order_by("-finished_at").first()
        if row is not None and row.state == JobState.FAILED:
            found.append(_project_job(kind, row, project, row.finished_at))
    return sorted(found, key=lambda job: job.at, reverse=True)


def finished_jobs(project: Project, most: int) -> Iterator[ProjectJob]:
    """The newest that ended, of each kind."""
    for kind in JOB_KINDS:
        rows = kind.rows(project).filter(finished_at__isnull=False).order_by("-finished_at")
        for row in rows[:most]:
            yield _project_job(kind, row, project, row.finished_at)


def _project_job(kind: JobKind, row: Job, project: Project, at: datetime) -> ProjectJob:
    progress = row.progress or {}
    person = getattr(row, kind.by, None) if kind.by else None
    return ProjectJob(
        title=kind.title(row),
        url=kind.url(row, project.slug),
        state=row.state,
        note=str(progress.get("note") or ""),
        done=progress.get("done"),
        total=progress.get("total"),
        error=row.error,
        by=str(person) if person else "",
        at=at,
    )


def _page(name: str, *attributes: str) -> Callable[[Any, str], str]:
    """The page of a row, whose address has these attributes of it (`judge_id`) after the project's slug."""
    return lambda row, slug: reverse(name, args=[slug, *(getattr(row, each) for each in attributes)])


JOB_KINDS = (
    JobKind(
        "trajectories.Import",
        "project",
        lambda row: f"Import of {row.filename}",
        _page("trajectories:import-detail", "pk"),
        by="uploaded_by",
    ),
    JobKind("demo.SampleLoad", "project", lambda row: "Sample project", _page("accounts:project-home")),
    JobKind(
        "connectors.ConnectorRun",
        "connector__project",
        lambda row: f"Connector {row.connector.name}",
        _page("connectors:run-detail", "connector_id", "pk"),
        by="",
        related=("connector",),
    ),
    JobKind(
        "datasets.DatasetVersion",
        "project",
        lambda row: f"Dataset version {row.name}@{row.version}",
        _page("datasets:dataset-version-detail", "pk"),
    ),
    JobKind(
        "datasets.Export",
        "project",
        lambda row: f"Export as {row.format}",
        _page("datasets:export-list"),
    ),
    JobKind(
        "training.TrainingRun",
        "project",
        lambda row: f"Training run of {row.model_name}, {row.recipe_title}",
        _page("training:run-detail", "pk"),
        by="started_by",
    ),
    JobKind(
        "training.ModelImport",
        "project",
        lambda row: "Model import",
        _page("training:model-import-detail", "pk"),
        by="started_by",
    ),
    JobKind(
        "judges.JudgeRun",
        "judge__project",
        lambda row: f"Judge run of {row.judge.name}",
        _page("judges:judge-run-detail", "pk"),
        related=("judge",),
    ),
    JobKind(
        "metrics.Induction",
        "project",
        lambda row: "Metric induction",
        _page("metrics:induction-detail", "pk"),
    ),
)
