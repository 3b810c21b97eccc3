"""A queued job has a place among those of the same workers, and an estimate from how long earlier ones took."""

from datetime import timedelta
from typing import Any

import pytest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils import timezone

from apps.accounts.models import Project
from apps.core.jobs.job_queue import JobState
from apps.core.jobs.queue_position import ordinal, queue_position
from apps.datasets.models import DatasetVersion, Export
from apps.metrics.models import Induction
from apps.semantic_search.models import TrajectoryClustering

pytestmark = pytest.mark.django_db


def frozen(project: Project, number: int, state: str = "queued", **times: Any) -> DatasetVersion:
    return DatasetVersion.objects.create(project=project, name="d", version=number, state=state, **times)


def words(job: Any) -> str:
    template = Template('{% include "components/_job_progress.html" with label="Job" %}')
    return template.render(Context({"job": job}))


def test_the_place_counts_all_kinds_of_the_same_workers(project: Project) -> None:
    frozen(project, 1, "running", started_at=timezone.now())
    frozen(project, 2)
    Export.objects.create(project=project, format="csv")
    Induction.objects.create(project=project)  # the GPU's workers do it
    job = frozen(project, 3)
    position = queue_position(job)
    assert position is not None
    assert (position.place, position.running, position.minutes) == (3, 1, None)
    assert position.words == "3rd in the queue, 1 running"


def test_earlier_jobs_tell_how_long_it_takes(project: Project) -> None:
    now = timezone.now()
    for number in range(3):
        frozen(
            project,
            number,
            "succeeded",
            started_at=now - timedelta(hours=1),
            finished_at=now - timedelta(minutes=56),
        )
    frozen(project, 10, "running", started_at=now - timedelta(minutes=3))
    frozen(project, 11)
    position = queue_position(frozen(project, 12))
    assert position is not None and position.minutes == pytest.approx(5, abs=0.1)
    assert position.words == "2nd in the queue, 1 running, about 5 min"


def test_a_page_says_queued_or_working_and_never_both(project: Project) -> None:
    queued = words(frozen(project, 1))
    assert "Next in the queue" in queued and "Working" not in queued and "<progress" not in queued
    running = words(frozen(project, 2, "running", started_at=timezone.now()))
    assert "Working" in running and "queue" not in running


def test_a_job_that_is_not_queued_has_no_place(project: Project) -> None:
    assert queue_position(frozen(project, 1, JobState.FAILED)) is None


@pytest.mark.parametrize(
    ("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (113, "113th")]
)
def test_ordinals(number: int, word: str) -> None:
    assert ordinal(number) == word


def test_a_queued_clustering_shows_its_place_and_no_bar(project: Project) -> None:
    clustering = TrajectoryClustering.objects.create(project=project)
    page = render_to_string(
        "semantic_search/_clustering_status.html", {"project": project, "clustering": clustering}
    )
    assert "job-queue" in page
    assert "Working" not in page
