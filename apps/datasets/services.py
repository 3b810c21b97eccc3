"""Writes of dataset versions. A frozen one never changes."""

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.annotation.feedback.records import check_filters
from apps.core.jobs import job_queue
from apps.core.version_names import check_slug
from apps.datasets.derived_records import check_derived
from apps.datasets.models import DatasetVersion
from apps.datasets.splits import SHARES, check_shares
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import parse_filter

ADVANCE_DATASET_VERSIONS = "apps.datasets.tasks.advance_dataset_versions"
By = User | ApiKey | None  # None is the command line


@transaction.atomic
def freeze_dataset(
    *,
    project: Project,
    name: str,
    by: By,
    filters: dict[str, Any] | None = None,
    derived: Collection[str] = (),
    test_tasks: Collection[str] | None = None,
    shares: tuple[float, ...] = SHARES,
    seed: int = 0,
    claimed: bool = False,
) -> DatasetVersion:
    """Make the next version of `name`, to be built by a worker.

    by: None is the command line. derived: names of DERIVED_SOURCES to include. claimed: the caller builds it with
    `build_dataset_version`.
    """
    check_slug(name, what="dataset")
    filters = {key: value for key, value in (filters or {}).items() if value}
    check_filters(filters)
    filters |= checked_filter(project, filters)
    extra = check_derived(derived)
    split = {
        "test_tasks": None if test_tasks is None else sorted(set(test_tasks)),
        "shares": list(check_shares(shares)),
        "seed": seed,
    }
    Project.objects.select_for_update().get(pk=project.pk)  # so that versions are given one after the other
    newest = DatasetVersion.objects.filter(project=project, name=name).aggregate(newest=Max("version"))[
        "newest"
    ]
    dataset_version = DatasetVersion(
        project=project,
        name=name,
        version=(newest or 0) + 1,
        filters=filters | {"split": split} | ({"derived": extra} if extra else {}),
        created_by=by if isinstance(by, User) else by.created_by if by else None,
    )
    if claimed:
        now = timezone.now()
        dataset_version.state, dataset_version.attempt = job_queue.JobState.RUNNING, 1
        dataset_version.started_at = dataset_version.heartbeat_at = now
    dataset_version.save()
    record_audit(project=project, actor=by, verb="dataset.frozen", target=str(dataset_version))
    if not claimed:
        job_queue.nudge_on_commit(ADVANCE_DATASET_VERSIONS)
    return dataset_version


def checked_filter(project: Project, filters: dict[str, Any]) -> dict[str, str]:
    """The filter of trajectories in its one form, if there is one. Raises FilterError."""
    query = parse_filter(filters.get("filter")).query
    filter_trajectories(project, query)  # for names that the project does not have
    return {"filter": query} if query else {}


@transaction.atomic
def cancel_dataset_version(*, dataset_version: DatasetVersion, by: By) -> DatasetVersion:
    """Stop a dataset version that is not frozen yet."""
    job_queue.request_cancel(dataset_version)
    record_audit(
        project=dataset_version.project, actor=by, verb="dataset.cancelled", target=str(dataset_version)
    )
    return dataset_version
