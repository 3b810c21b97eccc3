"""Bulk jobs over the JSON API."""

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key
from apps.bulk.models import BulkJob
from apps.training.models import RewardModel
from tests.bulk.stored import end_chunks, store_trajectories

pytestmark = pytest.mark.django_db


@pytest.fixture
def call(project: Project) -> "Call":
    return Call(project)


class Call:
    def __init__(self, project: Project) -> None:
        key = create_api_key(project=project, scopes=[Scope.TRAIN])[1]
        self.client = Client(headers={"Authorization": f"Bearer {key}"})
        self.path = f"/api/v1/projects/{project.slug}/bulk-jobs"

    def post(self, path: str = "", **body: Any) -> tuple[int, dict[str, Any]]:
        reply = self.client.post(self.path + path, body, content_type="application/json")
        return reply.status_code, reply.json()


def test_a_job_from_its_estimate_to_its_results(project: Project, model: RewardModel, call: Call) -> None:
    keys = store_trajectories(project, 4)
    named = {"work": "score", "model": "quick", "filter": "agent=desk"}
    status, estimate = call.post("/estimate", **named)
    assert (status, estimate["items"], estimate["seconds"]) == (200, 4, None)
    status, created = call.post(**named, steps=True)
    assert (status, created["state"], created["items"], created["steps"]) == (201, "running", 4, True)
    job = BulkJob.objects.get(pk=created["id"])
    assert call.post(f"/{job.pk}/pause")[1]["state"] == "paused"
    assert call.post(f"/{job.pk}/resume")[1]["state"] == "running"
    end_chunks(job, problems=frozenset(keys[:1]))
    found = call.client.get(f"{call.path}/{job.pk}").json()
    assert (found["state"], found["done"], found["problems"]) == ("succeeded", 4, 1)
    lines = call.client.get(f"{call.path}/{job.pk}/results?problems=true").getvalue()
    assert lines.count(b"\n") == 1 and b"too long" in lines
    assert call.post(f"/{job.pk}/retry")[1]["state"] == "running"
    assert call.post(f"/{job.pk}/cancel")[1]["state"] == "cancelled"
    status, problem = call.post(f"/{job.pk}/resume")
    assert status == 409 and "is cancelled" in str(problem["detail"])
    (listed,) = call.client.get(call.path).json()["items"]
    assert listed["id"] == job.pk


def test_what_is_not_there_is_said(project: Project, model: RewardModel, call: Call) -> None:
    store_trajectories(project, 1)
    assert call.post(work="score", model="none")[0] == 404
    status, problem = call.post(work="score", model="quick", filter="colour=red")
    assert status == 400 and "no filter 'colour'" in str(problem["detail"])
    other = Call(Project.objects.create(slug="other", name="Other"))
    job = call.post(work="score", model="quick")[1]["id"]
    assert other.client.get(f"{other.path}/{job}").status_code == 404
