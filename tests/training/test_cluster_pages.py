"""What people see of clusters: the form, the page of a run, the API and the command."""

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Scope
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.training.launching.state import LaunchedState
from apps.training.models import TrainingRun
from tests.training import cluster
from tests.training.test_api import bearer


@pytest.fixture
def slurm(settings: Any) -> None:
    settings.SLURM = settings.SLURM | {"python": "/opt/touchstone/bin/python"}


def test_the_form_offers_what_is_set_up(
    dataset_version: DatasetVersion, researcher_client: Client, slurm: None
) -> None:
    url = reverse("training:run-create", args=["desk"])
    page = researcher_client.get(url).content.decode()
    assert '<option value="slurm">SLURM</option>' in page
    assert '<option value="kubernetes" disabled>' in page.replace('disabled=""', "disabled")
    assert "Kubernetes (not set up: set TOUCHSTONE_KUBERNETES_IMAGE" in page
    fields = {"dataset": dataset_version.pk, "recipe": "bradley-terry", "seed": 3, "name": "polite"}
    refused = researcher_client.post(url, fields | {"on": "kubernetes"})
    assert "Kubernetes is not set up" in refused.content.decode()
    answer = researcher_client.post(url, fields | {"on": "slurm", "hosts": 2, "gpus": 8})
    run = TrainingRun.objects.get()
    assert answer.status_code == 302
    assert (run.launcher, run.launch_options) == ("slurm", {"hosts": 2, "gpus": 8})
    again = researcher_client.get(f"{url}?like={run.pk}").content.decode()
    assert '<option value="slurm" selected>' in again


def test_a_recipe_of_one_process_takes_one_host(
    dataset_version: DatasetVersion, researcher_client: Client, slurm: None
) -> None:
    fields = {"dataset": dataset_version.pk, "recipe": "bradley-terry-linear", "seed": 3, "on": "slurm"}
    answer = researcher_client.post(reverse("training:run-create", args=["desk"]), fields | {"hosts": 2})
    assert answer.status_code == 422
    assert "This recipe is trained by one process" in answer.content.decode()


def test_the_page_of_a_run_and_the_api_show_its_job(
    dataset_version: DatasetVersion, researcher_client: Client, slurm: None
) -> None:
    run = cluster.start(dataset_version, on="slurm")
    launched = LaunchedState(
        submission=2, handle={"job": "4711"}, is_open=True, phase="pending", reason="Priority"
    )
    TrainingRun.objects.filter(pk=run.pk).update(state=JobState.RUNNING, launched=launched.values())
    page = researcher_client.get(reverse("training:run-detail", args=["desk", run.pk])).content.decode()
    assert "Job 4711 on slurm: pending (Priority); submitted 2 times" in page
    header = bearer(dataset_version.project, Scope.TRAIN)
    found = Client().get(f"/api/v1/runs/{run.pk}", headers=header).json()
    assert (found["on"], found["job"]) == (
        "slurm",
        "Job 4711 on slurm: pending (Priority); submitted 2 times",
    )


def test_the_command_takes_a_launcher(dataset_version: DatasetVersion, slurm: None) -> None:
    call_command("train", "desk", dataset="first", recipe="bradley-terry", on="slurm", gpus=4)
    assert TrainingRun.objects.get().launch_options == {"hosts": 1, "gpus": 4}
