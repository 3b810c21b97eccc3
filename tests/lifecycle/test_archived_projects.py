"""In an archived project nothing goes on, and owners can still end access and delete personal data."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.keys import service_account_for
from apps.accounts.models import Membership, Project, Role, Scope, User
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotation, Annotator
from apps.bulk.chunks import claim_chunk
from apps.bulk.models import BulkJob
from apps.bulk.services import create_bulk_job, pause_bulk_job
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.lifecycle import retention, services
from apps.lifecycle.models import RetentionRun
from apps.monitoring.models import Monitor
from apps.monitoring.services import check_endpoints
from apps.retraining.cycle import advance_cycles, start_online_cycles
from apps.retraining.models import RetrainingCycle
from apps.rewards.models import Endpoint, EndpointRevision, Release, ScoreSample
from apps.rewards.services import advance_releases
from apps.training.models import RewardModel
from apps.trajectories import traces
from apps.trajectories.models import Trace
from tests.annotation.feedback.test_out import PAIR
from tests.annotation.feedback.test_round_trips import load
from tests.bulk.stored import store_trajectories
from tests.factories import make_member, signed_in


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", Role.OWNER)


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    endpoint = Endpoint.objects.create(project=project, name="quality", sample_share=1.0)
    endpoint.active = EndpointRevision.objects.create(endpoint=endpoint, number=1, spec={})
    endpoint.save()
    return endpoint


def open_cycle(endpoint: Endpoint) -> RetrainingCycle:
    model = RewardModel.objects.create(
        project=endpoint.project, name="m", version=1, artifact="models/none", manifest={}
    )
    return RetrainingCycle.objects.create(endpoint=endpoint, previous_model=model, stage="asking")


def archived(project: Project) -> Project:
    """By its row alone, as if something had begun in the same moment."""
    Project.objects.filter(pk=project.pk).update(archived_at=timezone.now())
    project.refresh_from_db()
    return project


def test_bulk_jobs_end_as_cancelled(project: Project, owner: User, endpoint: Endpoint) -> None:
    store_trajectories(project, 4)
    running, paused = (create_bulk_job(project=project, work="endpoint", endpoint=endpoint) for _ in "ab")
    pause_bulk_job(job=paused, by=None)
    begun = claim_chunk(running)
    assert begun is not None
    services.archive_project(project=project, by=owner)
    job_queue.finish(begun, JobState.CANCELLED)
    assert set(BulkJob.objects.values_list("state", flat=True)) == {"cancelled"}


def test_a_bulk_job_with_a_cancelled_chunk_has_not_succeeded(project: Project, endpoint: Endpoint) -> None:
    store_trajectories(project, 2)
    job = create_bulk_job(project=project, work="endpoint", endpoint=endpoint)
    chunk = claim_chunk(job)
    assert chunk is not None
    job_queue.finish(chunk, JobState.CANCELLED)
    job.refresh_from_db()
    assert job.state == "cancelled" and job.finished_at is not None


def test_cycles_and_releases_end(project: Project, owner: User, endpoint: Endpoint) -> None:
    assert endpoint.active is not None
    tried = EndpointRevision.objects.create(endpoint=endpoint, number=2, spec={})
    release = Release.objects.create(
        endpoint=endpoint, revision=tried, against=endpoint.active, stage="canary", share=0.5
    )
    cycle = open_cycle(endpoint)
    services.archive_project(project=project, by=owner)
    release.refresh_from_db()
    cycle.refresh_from_db()
    assert (release.stage, cycle.stage) == ("withdrawn", "stopped")
    assert release.reason == cycle.reason == services.ARCHIVED


def test_beat_changes_nothing_in_it(
    project: Project, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(project)
    assert endpoint.active is not None
    monitor = Monitor.objects.create(endpoint=endpoint, retrain_after=1)
    ScoreSample.objects.create(endpoint=endpoint, version=1, caller="k", item={}, result={})
    open_cycle(endpoint)
    tried = EndpointRevision.objects.create(endpoint=endpoint, number=2, spec={})
    Release.objects.create(
        endpoint=endpoint, revision=tried, against=endpoint.active, stage="shadow", automatic=True
    )
    now = timezone.now()
    Trace.objects.create(project=project, name="t", last_at=now, look_at=now)

    def refuse(*args: object, **named: object) -> None:
        raise AssertionError("nothing goes on in an archived project")

    monkeypatch.setattr("apps.retraining.cycle.advance_cycle", refuse)
    monkeypatch.setattr("apps.retraining.cycle.count_new_verified", refuse)
    monkeypatch.setattr("apps.rewards.services.release_decision", refuse)
    for go_on in (advance_cycles, start_online_cycles, advance_releases, check_endpoints, traces.collect):
        go_on()
    monitor.refresh_from_db()
    assert monitor.checked_at is None and RetrainingCycle.objects.filter(ended_at=None).count() == 1
    assert Trace.objects.get().look_at == now


def test_rules_of_retention_wait_until_it_is_open_again(project: Project, endpoint: Endpoint) -> None:
    long_ago = timezone.now() - timedelta(days=40)
    ScoreSample.objects.create(endpoint=endpoint, version=1, caller="k", item={}, result={}, at=long_ago)
    days = dict.fromkeys(retention.DAYS) | {"sample_days": 30}
    retention.set_retention(project=project, by=None, **days)
    retention.start_retention(project)
    archived(project)
    run = job_queue.claim_next(RetentionRun)
    assert run is not None
    retention.apply_retention(run)
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED and ScoreSample.objects.count() == 1
    assert retention.start_due_retention() == 0 and retention.start_retention(project) is None
    Project.objects.update(archived_at=None)
    assert retention.start_due_retention() == 1


def test_owners_end_access(project: Project, owner: User) -> None:
    leaver = make_member(project, "leaver@example.org", Role.RESEARCHER)
    member = Membership.objects.get(user=leaver)
    leaked, _ = create_api_key(project=project, scopes=[Scope.INGEST], by=None)
    robot = service_account_for(project=project, name="robot", by=owner)
    archived(project)
    client = signed_in(owner)
    for name, key, data in (
        ("member-change", member.pk, {"role": "annotator"}),
        ("member-remove", member.pk, {}),
        ("key-revoke", leaked.pk, {}),
        ("service-account-close", robot.pk, {}),
        ("sign-in-rules", None, {}),
    ):
        url = reverse(f"accounts:{name}", args=["desk", *([key] if key else [])])
        answer = client.post(url, data)
        assert answer.status_code == 302, (name, answer.status_code)
    assert not Membership.objects.filter(user=leaver).exists()
    leaked.refresh_from_db()
    robot.refresh_from_db()
    assert leaked.revoked_at is not None and not robot.is_active
    assert (
        client.post(reverse("accounts:key-create", args=["desk"]), {"scopes": ["ingest"]}).status_code == 409
    )


def test_keys_end_access(project: Project, owner: User) -> None:
    leaver = make_member(project, "leaver@example.org", Role.RESEARCHER)
    leaked, _ = create_api_key(project=project, scopes=[Scope.INGEST], by=None)
    _, secret = create_api_key(project=project, scopes=[Scope.ADMIN], by=None)
    archived(project)
    headers: Any = {"Authorization": f"Bearer {secret}"}
    api, base = Client(), "/api/v1/projects/desk"
    assert api.delete(f"{base}/keys/{leaked.prefix}", headers=headers).status_code == 204
    assert api.delete(f"{base}/members/{leaver.email}", headers=headers).status_code == 204
    refused = api.post(f"{base}/invitations", {"role": "annotator"}, "application/json", headers=headers)
    assert refused.status_code == 409


def test_owners_delete_what_a_person_gave(project: Project, owner: User) -> None:
    load(project, "pairs", json.dumps(PAIR))
    person = Annotator.objects.get()
    archived(project)
    client = signed_in(owner)
    answer = client.post(reverse("datasets:erase", args=["desk"]), {"annotator": person.pk, "sure": "1"})
    assert answer.status_code == 302 and not Annotation.objects.exists()
