"""Shared queries of training runs and models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.models import Q, QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.core.storage.storage_names import home_path
from apps.core.version_names import parse_name
from apps.training.models import ModelImport, RewardModel, TrainingRun, TrainingRunEvent
from workers.schema.parents import NOT_PARENTS


def runs_of(project: Project) -> QuerySet[TrainingRun]:
    """Newest first."""
    rows = TrainingRun.objects.filter(project=project).select_related(
        "project", "dataset_version__project", "model__project", "parent__project", "started_by"
    )
    return rows.order_by("-created_at", "-pk")


def models_of(project: Project) -> QuerySet[RewardModel]:
    """Newest first, without deleted ones."""
    rows = RewardModel.objects.filter(project=project, deleted_at=None)
    rows = rows.select_related("project", "parent__project", "training_run__dataset_version__project")
    return rows.order_by("-created_at", "-pk")


def imports_of(project: Project) -> QuerySet[ModelImport]:
    """Newest first."""
    rows = ModelImport.objects.filter(project=project)
    return rows.select_related("project", "model__project", "started_by").order_by("-created_at", "-pk")


def possible_parents(project: Project) -> QuerySet[RewardModel]:
    """The models that a training can start from; see `can_be_parent`."""
    kind = "manifest__backbone__kind"  # missing in manifests of the first version
    return models_of(project).filter(Q(**{f"{kind}__isnull": True}) | ~Q(**{f"{kind}__in": NOT_PARENTS}))


def model_named(text: str, *, project: Project | None = None) -> RewardModel:
    """The model named by `text`, by default its newest version."""
    name = parse_name(text, project=project.slug if project else None)
    rows = RewardModel.objects.select_related("project", "training_run__dataset_version__project")
    rows = rows.filter(project__slug=name.project, name=name.name, deleted_at=None)
    if name.version is not None:
        rows = rows.filter(version=name.version)
    found = rows.order_by("-version").first()
    if found is None:
        raise NotFound(f"There is no model {name}; see the Models page of {name.project}.")
    return found


def with_ancestors(model: RewardModel) -> Iterator[RewardModel]:
    """The model, its parent, and so on to the first."""
    found: RewardModel | None = model
    while found is not None:
        yield found
        found = found.parent


def read_decisions(path: Path) -> list[Any] | None:
    """What the core wrote next to a report; None of a version that did not."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def run_folder(run: TrainingRun) -> Path:
    return home_path("runs", run.pk)


def events_after(run: TrainingRun, seq: int = 0) -> list[dict[str, Any]]:
    """The event lines of the run after line `seq`, in order."""
    return list(run.events.filter(seq__gt=seq).values_list("data", flat=True))


def run_events(run: TrainingRun, *, after: int = 0) -> QuerySet[TrainingRunEvent]:
    """Events in the order they were stored, those with a key over `after`. Their keys rise where line numbers begin
    again: an attempt that resumes replaces what was logged after its checkpoint."""
    return TrainingRunEvent.objects.filter(training_run=run, pk__gt=after).order_by("pk")
