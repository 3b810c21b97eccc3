"""The deletion of a project that stops before its end, and of one with rows that cannot be without what they name."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import Project, Role, User
from apps.bulk.models import BulkJob
from apps.bulk.services import create_bulk_job
from apps.core.jobs.job_queue import JobState, claim_next, work
from apps.core.storage.storage_names import home_path
from apps.datasets.models import DatasetVersion
from apps.lifecycle import services
from apps.lifecycle.models import ProjectDeletion
from apps.rewards.models import Endpoint, EndpointRevision
from apps.training.models import TrainingRun
from tests.bulk.stored import store_trajectories
from tests.datasets.feedback import frozen_nothing
from tests.factories import make_member, signed_in


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", Role.OWNER)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "_SECONDS_FOR_JOBS", 0.0)


def request(project: Project, owner: User) -> ProjectDeletion:
    return services.request_deletion(project=project, typed_name=project.slug, by=owner)


def delete_next() -> ProjectDeletion:
    deletion = claim_next(ProjectDeletion)
    assert deletion is not None
    work(deletion, services.delete_project)
    deletion.refresh_from_db()
    return deletion


def refuse(*args: Any) -> int:
    raise RuntimeError("no space left")


def test_with_a_bulk_job_of_an_endpoint(project: Project, owner: User) -> None:
    store_trajectories(project, 2)
    endpoint = Endpoint.objects.create(project=project, name="quality")
    endpoint.active = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec={})
    endpoint.save()
    create_bulk_job(project=project, work="endpoint", endpoint=endpoint)
    request(project, owner)
    deletion = delete_next()
    connection.check_constraints()
    assert (deletion.state, deletion.error) == (JobState.SUCCEEDED, "")
    assert not Project.objects.exists() and not BulkJob.objects.exists()


def test_one_that_failed_is_tried_again_or_given_up(
    project: Project, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    request(project, owner)
    with monkeypatch.context() as patch:
        patch.setattr(services, "_delete_rows", refuse)
        assert delete_next().state == JobState.FAILED
    client = signed_in(owner)
    page = client.get("/p/desk/data/").content.decode()
    assert "The deletion of this project has stopped" in page and "Open again" in page
    client.post("/p/desk/data/archive", {"restore": "1"})
    project.refresh_from_db()
    assert project.archived_at is None and not ProjectDeletion.objects.exists()
    request(project, owner)
    with monkeypatch.context() as patch:
        patch.setattr(services, "_delete_rows", refuse)
        delete_next()
    client.post("/p/desk/data/delete", {"name": "desk"})
    assert delete_next().state == JobState.SUCCEEDED and not Project.objects.exists()


def test_one_that_is_cancelled_says_so(
    project: Project, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    request(project, owner)

    def cancel(key: int, heartbeat: Any) -> None:
        heartbeat.cancelled.set()
        heartbeat.check()

    monkeypatch.setattr(services, "_wait_for_jobs", cancel)
    assert delete_next().state == JobState.CANCELLED and Project.objects.exists()


def test_folders_of_runs_stay_until_the_rows_are_gone(
    project: Project, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = TrainingRun.objects.create(
        project=project,
        dataset_version=frozen_nothing(project),
        recipe_name="own",
        recipe={},
        model_name="m",
        state=JobState.SUCCEEDED,
    )
    folder: Path = home_path("runs", run.pk)
    folder.mkdir(parents=True)
    request(project, owner)
    with monkeypatch.context() as patch:
        patch.setattr(services, "_delete_rows", refuse)
        delete_next()
    assert folder.is_dir() and DatasetVersion.objects.exists()
    request(project, owner)
    delete_next()
    assert not folder.exists()


def test_files_that_are_left_are_deleted_later(
    project: Project, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    request(project, owner)
    with monkeypatch.context() as patch:
        patch.setattr(services, "delete_tree", refuse)
        assert delete_next().state == JobState.FAILED
    assert not Project.objects.exists()
    assert services.retry_left_files() == 1 and services.retry_left_files() == 0
    deletion = delete_next()
    assert deletion.state == JobState.SUCCEEDED and deletion.files == [] and deletion.rows > 0
