"""The sample project that the browser opens."""

import pytest
from django.test import Client

from apps.accounts.models import Project, Role, User
from apps.accounts.services import create_user
from apps.annotation.models import Campaign
from apps.core.jobs.job_queue import JobState, claim_next
from apps.datasets.models import DatasetVersion
from apps.demo.models import SampleLoad
from apps.demo.sample_loads import fill_sample, open_sample
from apps.training.models import TrainingRun
from apps.trajectories.models import Trajectory


@pytest.fixture
def nora(db: None) -> User:
    return create_user(email="nora@example.org")[0]


def test_one_click_creates_one_project_and_the_next_opens_it(nora: User) -> None:
    client = Client()
    client.force_login(nora)
    for _ in range(2):
        assert client.post("/projects/sample")["Location"] == "/p/sample-a-support-desk/"
    [load] = SampleLoad.objects.all()
    assert load.state == JobState.QUEUED
    assert load.project.memberships.get().role == Role.OWNER
    other, _ = create_user(email="omar@example.org")
    assert open_sample(by=other) != load.project
    assert client.get("/projects/sample").status_code == 405


def test_a_load_that_failed_is_tried_again(nora: User) -> None:
    project = open_sample(by=nora)
    SampleLoad.objects.update(state=JobState.FAILED, error="The disk is full.")
    assert open_sample(by=nora) == project
    assert SampleLoad.objects.get().state == JobState.QUEUED


@pytest.mark.slow
def test_the_worker_fills_it_up_to_a_training_run(nora: User) -> None:
    project = open_sample(by=nora)
    load = claim_next(SampleLoad)
    assert load is not None
    fill_sample(load)
    load.refresh_from_db()
    assert (load.state, load.error) == (JobState.SUCCEEDED, "")
    assert Trajectory.objects.filter(project=project).count() == 300
    assert Campaign.objects.filter(project=project, state="open").exists()
    assert DatasetVersion.objects.get(project=project).state == JobState.SUCCEEDED
    assert TrainingRun.objects.get(project=project).state == JobState.QUEUED
    assert Project.objects.count() == 1
