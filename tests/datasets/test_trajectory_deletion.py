"""Deletion of what a filter finds: who may, what is named, what goes, what stays."""

import base64

import pytest

from apps.accounts.models import AuditEvent, Project, Role
from apps.annotation.models import Annotation, Item
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import JobState
from apps.datasets import trajectory_deletion
from apps.datasets.models import DatasetVersion, TrajectoryDeletion
from apps.datasets.services import freeze_dataset
from apps.datasets.trajectory_deletion import plan_deletion, run_deletion, start_deletion
from apps.datasets.version_builder import build_dataset_version
from apps.trajectories.models import Attachment, Task, Trajectory
from tests.api_calls import ApiCaller
from tests.datasets.test_filter_surfaces import desk, sample
from tests.factories import member_client
from tests.trajectories.conftest import record
from tests.trajectories.test_views import PNG, bring

__all__ = ["desk"]
PAGE = "/p/desk/datasets/trajectories/delete/"


def run_next() -> TrajectoryDeletion:
    job = job_queue.claim_next(TrajectoryDeletion)
    assert job is not None
    run_deletion(job)
    job.refresh_from_db()
    return job


@pytest.fixture
def judged(desk: Project) -> Project:
    """A comparison of each task of `desk`."""
    call = ApiCaller(desk)
    for number in range(8):
        sides = {side: {"messages": sample(number, again)["messages"]} for again, side in enumerate("ab")}
        call(
            "POST", "/feedback", {"task": {"id": f"task-{number}"}, "choice": "a", "annotator": "ann"} | sides
        )
    return desk


def test_the_plan_names_what_refers_to_them(judged: Project) -> None:
    build_dataset_version(freeze_dataset(project=judged, name="all", by=None, claimed=True))
    plan = plan_deletion(judged, "agent=fox")
    assert (plan.trajectories, plan.items, plan.annotations) == (4, 2, 2)
    assert plan.campaigns == (("Imported: API", 2),) and plan.versions == ("all@1",)
    nothing = plan_deletion(judged, "agent=nobody")
    assert (nothing.trajectories, nothing.items, nothing.versions) == (0, 0, ())


def test_only_what_was_confirmed_goes(judged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory_deletion, "DELETED_TOGETHER", 3)
    held = build_dataset_version(freeze_dataset(project=judged, name="all", by=None, claimed=True))
    others = freeze_dataset(
        project=judged, name="owls", by=None, filters={"filter": "agent=owl"}, claimed=True
    )
    build_dataset_version(others)
    start_deletion(project=judged, source="agent=fox", expected=4, by=None)
    bring(judged, sample(0, 7))  # later: it is not what was confirmed
    job = run_next()
    assert (job.state, job.deleted, job.items, job.annotations) == (JobState.SUCCEEDED, 4, 2, 2)
    assert job.trajectory_ids == [] and job.version_names == ["all@1"]
    assert Trajectory.objects.filter(agent_name="fox").count() == 1
    assert Item.objects.count() == Annotation.objects.count() == 6
    assert not Task.objects.filter(external_id="task-4").exists()
    assert Task.objects.filter(external_id="task-0").exists(), "a trajectory of it came later"
    held.refresh_from_db()
    others.refresh_from_db()
    assert held.withdrawn_at and not others.withdrawn_at
    verbs = AuditEvent.objects.filter(verb__startswith="trajectories.delet").order_by("pk")
    assert [event.verb for event in verbs] == ["trajectories.deletion_started", "trajectories.deleted"]
    assert verbs[1].data["trajectories"] == 4 and verbs[1].data["datasets"] == ["all@1"]
    assert DatasetVersion.objects.filter(withdrawn_at=None).count() == 1


def test_an_interrupted_deletion_goes_on(desk: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory_deletion, "DELETED_TOGETHER", 2)
    start_deletion(project=desk, source="agent=owl", expected=12, by=None)
    job = job_queue.claim_next(TrajectoryDeletion)
    assert job is not None
    trajectory_deletion._delete_chunk(job, job.trajectory_ids[:2])
    job_queue.release(job)
    done = run_next()
    assert (done.deleted, done.state) == (12, JobState.SUCCEEDED)
    assert not Trajectory.objects.filter(agent_name="owl").exists()


def test_attachments_that_others_name_stay(project: Project, own_home: None) -> None:
    def picture(number: int, image: bytes) -> dict[str, object]:
        url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
        content = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": f"Look {number}."},
        ]
        messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "Seen."}]
        return record(number, messages=messages)

    bring(project, picture(1, PNG), picture(2, PNG), picture(3, PNG + b"more"))
    first, _, third = Trajectory.objects.order_by("pk")
    assert Attachment.objects.count() == 2
    start_deletion(project=project, source=f"id={first.pk},{third.pk}", expected=2, by=None)
    run_next()
    assert Attachment.objects.count() == Trajectory.objects.count() == 1


def test_more_than_was_confirmed_is_refused(desk: Project) -> None:
    with pytest.raises(Conflict, match="you confirmed 3"):
        start_deletion(project=desk, source="agent=fox", expected=3, by=None)
    with pytest.raises(DomainError, match="nothing is deleted"):
        start_deletion(project=desk, source="agent=nobody", expected=3, by=None)
    start_deletion(project=desk, source="agent=fox", expected=4, by=None)
    with pytest.raises(Conflict, match="Another deletion"):
        start_deletion(project=desk, source="agent=owl", expected=12, by=None)


def test_the_page_asks_for_the_number(judged: Project) -> None:
    owner = member_client(judged, Role.OWNER)
    page = owner.get(f"{PAGE}?agent=fox").content.decode()
    assert "Type 4 to confirm" in page and "Imported: API (2)" in page
    wrong = owner.post(f"{PAGE}?agent=fox", {"confirmed": "3"})
    assert wrong.status_code == 422 and not TrajectoryDeletion.objects.exists()
    answer = owner.post(f"{PAGE}?agent=fox", {"confirmed": "4"})
    job = TrajectoryDeletion.objects.get()
    assert answer["Location"] == f"/p/desk/datasets/deletions/{job.pk}/"
    assert b"0 of 4 deleted" in owner.get(answer["Location"]).content
    owner.post(f"{answer['Location']}cancel/")
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED and Trajectory.objects.count() == 16


@pytest.mark.parametrize("query", ["agnet=fox", "success=maybe", "page=2"])
def test_a_wrong_filter_deletes_nothing(desk: Project, query: str) -> None:
    owner = member_client(desk, Role.OWNER)
    assert owner.get(f"{PAGE}?{query}").status_code == 400
    assert owner.post(f"{PAGE}?{query}", {"confirmed": "16"}).status_code == 400
    assert not TrajectoryDeletion.objects.exists()


def test_researchers_do_not_delete(desk: Project) -> None:
    assert member_client(desk, Role.RESEARCHER).get(f"{PAGE}?agent=fox").status_code == 403
