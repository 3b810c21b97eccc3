"""Shared queries of dataset versions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import DomainError, NotFound
from apps.core.jobs.job_queue import JobState
from apps.core.storage.artifacts import stage
from apps.core.version_names import parse_name
from apps.datasets.models import DatasetVersion
from apps.datasets.splits import SPLITS
from apps.trajectories.selectors import keys_by_content_hash
from workers.schema import FeedbackRecord
from workers.schema.storage import stream_records


def list_dataset_versions(project: Project) -> QuerySet[DatasetVersion]:
    """Newest first."""
    return (
        DatasetVersion.objects.filter(project=project)
        .select_related("project", "created_by")
        .order_by("-created_at", "-pk")
    )


def find_dataset_version(text: str, *, project: Project | None = None) -> DatasetVersion:
    """The frozen dataset version named by `text`; without a version, the newest."""
    name = parse_name(text, project=project.slug if project else None)
    rows = DatasetVersion.objects.select_related("project").filter(project__slug=name.project, name=name.name)
    if name.version is not None:
        found = rows.filter(version=name.version).first()
        if found is None:
            raise NotFound(f"There is no dataset {name}.")
        return require_frozen(found)
    found = rows.filter(state=JobState.SUCCEEDED, withdrawn_at=None).order_by("-version").first()
    if found is None:
        raise NotFound(
            f"There is no frozen dataset {name}; create it with `freeze_dataset {name.project} {name.name}`."
        )
    return found


def get_dataset_version(project: Project, text: str) -> DatasetVersion:
    """The version named by `text` in any state; without a version, the newest frozen one."""
    name = parse_name(text, project=project.slug)
    if name.version is None:
        return find_dataset_version(text, project=project)
    found = list_dataset_versions(project).filter(name=name.name, version=name.version).first()
    if found is None:
        raise NotFound(f"There is no dataset {name}.")
    return found


def require_frozen(dataset_version: DatasetVersion) -> DatasetVersion:
    if dataset_version.state != JobState.SUCCEEDED:
        raise DomainError(
            f"{dataset_version} is {dataset_version.state}; only a frozen dataset can be used.", status=409
        )
    if dataset_version.withdrawn_at is not None:
        raise DomainError(
            f"{dataset_version} is withdrawn: {dataset_version.withdrawn_because}. Freeze the feedback again.",
            status=409,
        )
    return dataset_version


def data_folder(dataset_version: DatasetVersion) -> Path:
    """A local folder with {train,validation,test}.jsonl.zst, to be read only."""
    return stage(require_frozen(dataset_version).artifact)


def read_dataset_records(
    dataset_version: DatasetVersion, split: str | None = None
) -> Iterator[FeedbackRecord]:
    """The records of one split, or of all, in memory that hardly grows with their number."""
    folder = data_folder(dataset_version)
    for each in SPLITS if split is None else (split,):
        yield from stream_records(folder / f"{each}.jsonl.zst")


def near_copies(dataset_version: DatasetVersion) -> list[dict[str, Any]]:
    """[{train, held_out, similarity}]: the most similar pairs of trajectories, by primary key; None if deleted."""
    pairs = (dataset_version.leaks or {}).get("pairs", [])
    places = keys_by_content_hash(
        dataset_version.project, (pair[side] for pair in pairs for side in ("train", "held_out"))
    )
    return [pair | {side: places.get(pair[side]) for side in ("train", "held_out")} for pair in pairs]
