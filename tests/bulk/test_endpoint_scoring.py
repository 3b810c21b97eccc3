"""Bulk jobs that an endpoint scores, and the filter by their scores."""

from typing import Any

import pytest
from touchstone_client import Refused

from apps.accounts.models import Project
from apps.bulk import endpoint_scoring
from apps.bulk.models import BulkJob
from apps.bulk.services import create_bulk_job
from apps.bulk.turns import WorkerTurn
from apps.core.errors import DomainError
from apps.rewards.models import Endpoint, EndpointRevision
from apps.trajectories.filter_queries import filter_trajectories
from apps.trajectories.filters import FilterError
from tests.bulk.stored import store_trajectories


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    endpoint = Endpoint.objects.create(project=project, name="quality")
    revision = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec={})
    endpoint.active = revision
    endpoint.save()
    return endpoint


class Service:
    """Answers as the reward service does: the reward is the key, and `bad` is refused."""

    def __init__(self, bad: int | None = None) -> None:
        self.bad, self.bodies = bad, []  # type: ignore[var-annotated]

    def ask(self, endpoint: Endpoint, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        assert verb == "score"
        self.bodies.append(body)
        keys = [int(item["trajectory_id"]) for item in body["inputs"]]
        if self.bad in keys:
            pointer = f"/inputs/{keys.index(self.bad)}"
            raise Refused("It cannot be read.", status=422, problem={"pointer": pointer})
        results = [
            {"reward": float(key), "std": None, "flags": [], "steps": [{"agent_step": 0, "reward": 0.5}]}
            for key in keys
        ]
        return {"version": 1, "results": results, "usage": {"tokens": 7 * len(keys)}}


def run(job: BulkJob) -> None:
    endpoint_scoring.score_chunks(job, WorkerTurn(job))
    job.refresh_from_db()


def test_every_trajectory_is_scored_by_the_revision_of_the_job(
    project: Project, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = store_trajectories(project, 40)
    service = Service(bad=keys[5])
    monkeypatch.setattr(endpoint_scoring.remote, "ask", service.ask)
    job = create_bulk_job(
        project=project, work="endpoint", endpoint=endpoint, filter="agent=desk", with_steps=True
    )
    assert job.engine == "quality@1" and job.item_count == 40
    run(job)
    assert job.state == BulkJob.State.SUCCEEDED
    results = dict(job.results.filter(problem="").values_list("trajectory_id", "reward"))
    assert results == {key: float(key) for key in keys if key != keys[5]}
    assert job.results.get(trajectory=keys[5]).problem == "It cannot be read."
    assert job.results.filter(problem="").first().steps == [0.5]
    assert {body["version"] for body in service.bodies} == {1}
    low, high = keys[10], keys[20]
    query = f"endpoint=quality&score_from={low}&score_to={high}"
    assert set(filter_trajectories(project, query).values_list("pk", flat=True)) == set(keys[10:21])
    assert filter_trajectories(project, "endpoint=quality").count() == 39
    with pytest.raises(FilterError, match="no endpoint of this name"):
        filter_trajectories(project, "endpoint=other")


def test_the_newest_score_counts(
    project: Project, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    [key] = store_trajectories(project, 1)
    monkeypatch.setattr(endpoint_scoring.remote, "ask", Service().ask)
    for _ in range(2):
        run(create_bulk_job(project=project, work="endpoint", endpoint=endpoint))
    first = BulkJob.objects.order_by("pk").first()
    assert first is not None
    first.results.update(reward=-5)
    assert filter_trajectories(project, f"endpoint=quality&score_from={key}").count() == 1
    assert filter_trajectories(project, "endpoint=quality&score_to=0").count() == 0


def test_an_endpoint_that_cannot_score_fails_the_job(
    project: Project, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_trajectories(project, 2)

    def refuse(*_: Any) -> dict[str, Any]:
        raise Refused("There is no such endpoint.", status=404)

    monkeypatch.setattr(endpoint_scoring.remote, "ask", refuse)
    job = create_bulk_job(project=project, work="endpoint", endpoint=endpoint)
    with pytest.raises(DomainError, match="There is no such endpoint"):
        run(job)
    assert job.chunks.filter(state="queued").count() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [({"active": None}, "serves no model yet"), ({"switched_off": True}, "is switched off")],
)
def test_endpoints_that_do_not_score(
    project: Project, endpoint: Endpoint, change: dict[str, Any], message: str
) -> None:
    store_trajectories(project, 1)
    for name, value in change.items():
        setattr(endpoint, name, value)
    with pytest.raises(DomainError, match=message):
        create_bulk_job(project=project, work="endpoint", endpoint=endpoint)
    with pytest.raises(DomainError, match="Name no endpoint"):
        create_bulk_job(project=project, work="judge", endpoint=endpoint)
    with pytest.raises(DomainError, match="Name an endpoint"):
        create_bulk_job(project=project, work="endpoint")
