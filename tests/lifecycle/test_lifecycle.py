"""Archived projects are read only; a deleted one leaves nothing but its audit trail; rules delete by age."""

import io
import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.test import Client
from django.utils import timezone

from apps.accounts.models import ApiKey, AuditEvent, Project, Role, Scope
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotator, Campaign, Item, ItemTrajectory
from apps.annotation.services import create_campaign
from apps.core.errors import Conflict, DomainError
from apps.core.jobs.job_queue import Cancelled, JobState, claim_next
from apps.core.storage.artifacts import is_stored
from apps.datasets.erasure import erase_judgements
from apps.datasets.models import DatasetVersion, Export
from apps.datasets.selectors import read_dataset_records
from apps.lifecycle import archive_jobs, project_archive, retention, services
from apps.lifecycle.archive_jobs import (
    build_project_export,
    remove_old_project_exports,
    remove_project_exports,
)
from apps.lifecycle.models import ProjectDeletion, ProjectExport, RetentionRule, RetentionRun
from apps.lifecycle.project_archive import read_project, write_project
from apps.lifecycle.project_rows import project_paths, project_rows
from apps.machines.models import JoinToken
from apps.rewards.models import Endpoint, GuardDecision, ScoreSample
from apps.rubrics.services import CriterionDraft, save_rubric
from apps.training.models import Recipe
from apps.trajectories.models import Trajectory, TrajectoryComment
from apps.trajectories.services import import_trajectories, set_masking
from tests.annotation.feedback.test_out import PAIR
from tests.annotation.feedback.test_round_trips import RECORDS, given, load
from tests.config.world import make_world
from tests.datasets.feedback import freeze
from tests.factories import make_member, signed_in
from tests.lifecycle.unfinished_rows import add_waiting

pytestmark = pytest.mark.ml  # the world of the access tests imports torch


@pytest.fixture
def owner(project: Project) -> Any:
    return make_member(project, "owner@example.org", Role.OWNER)


def chat(text: str) -> bytes:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": text}]
    return json.dumps({"messages": messages}).encode()


def age(days: int, **filters: Any) -> None:
    Trajectory.objects.filter(**filters).update(created_at=timezone.now() - timedelta(days=days))


def rules(project: Project, **days: int) -> RetentionRule:
    every = dict.fromkeys(retention.DAYS) | days
    return retention.set_retention(project=project, by=None, **every)


def apply(project: Project) -> dict[str, int]:
    retention.start_retention(project)
    run = claim_next(RetentionRun)
    assert run is not None
    retention.apply_retention(run)
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED
    return dict(run.result)


def test_every_table_with_rows_of_a_project_is_found() -> None:
    """A new table without a way to its project would be left when the project is deleted."""
    names = {model._meta.label for model in project_paths()}
    from django.apps import apps

    ours = {m._meta.label for m in apps.get_models() if m.__module__.startswith("apps.")}
    without = {
        *(
            "core.Service",
            "core.StoreIdentity",
            "core.TableDisplay",
            "accounts.AuditSeal",
            "accounts.AuditAlias",
            "accounts.FirstAccount",
        ),
        *("accounts.ScimIdentity", "accounts.GuessCounter", "accounts.UserSession"),
        *("accounts.User", "accounts.AuditEvent", "inbox.NotificationPreference", "rewards.ScoreReceipt"),
        "lifecycle.ProjectDeletion",
    }
    assert ours - names == without


def test_a_project_is_deleted_with_everything_and_no_other(db: None, settings: Any) -> None:
    world, other = make_world("desk"), make_world("other")
    key = create_api_key(project=world.project, scopes=["reward"], by=None)[0]
    kept = {model: project_rows(model, other.project.pk).count() for model in project_paths()}
    export = Export.objects.filter(project=world.project).exclude(artifact="").get()
    pk, by = world.project.pk, world.people["owner"]
    with pytest.raises(DomainError, match="Type the name of the project, desk"):
        services.request_deletion(project=world.project, typed_name="other", by=by)
    services.request_deletion(project=world.project, typed_name="desk", by=by)
    assert ApiKey.objects.get(pk=key.pk).revoked_at is not None
    assert not Endpoint.objects.filter(project=pk, switched_off=False).exists()
    with pytest.raises(Conflict, match="is being deleted"):
        services.restore_project(project=world.project, by=by)
    deletion = claim_next(ProjectDeletion)
    assert deletion is not None
    services._SECONDS_FOR_JOBS, before = 0.0, services._SECONDS_FOR_JOBS
    services.delete_project(deletion)
    services._SECONDS_FOR_JOBS = before
    deletion.refresh_from_db()
    assert deletion.state == JobState.SUCCEEDED and deletion.rows > 50
    assert not [model for model in project_paths() if project_rows(model, pk).exists()]
    assert {model: project_rows(model, other.project.pk).count() for model in project_paths()} == kept
    assert not JoinToken.objects.filter(project=None).exists()  # which would open all projects
    assert not is_stored(export.artifact)
    assert is_stored(Export.objects.filter(project=other.project).exclude(artifact="").get().artifact)
    assert AuditEvent.objects.filter(verb="project.deleted", target="desk").exists()
    assert AuditEvent.objects.filter(project=pk, verb="project.archived").exists()


def test_an_archived_project_can_be_read_and_not_changed(project: Project, owner: Any) -> None:
    campaign = Campaign.objects.create(project=project, name="Which", feedback_types=["comment"])
    secret = create_api_key(project=project, scopes=[Scope.INGEST], by=None)[1]
    headers = {"Authorization": f"Bearer {secret}"}
    client = signed_in(owner)
    client.post("/p/desk/data/archive")
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.PAUSED
    assert client.get("/p/desk/campaigns/").status_code == 200
    refused = client.post("/p/desk/webhooks/add", {"url": "https://example.org/"})
    assert refused.status_code == 409 and "is archived" in refused.content.decode()
    api = Client()
    assert api.get("/api/v1/projects/desk/trajectories", headers=headers).status_code == 200
    body = chat("Hello")
    answer = api.post(
        "/api/v1/projects/desk/trajectories", body, content_type="application/json", headers=headers
    )
    assert answer.status_code == 409 and "is archived" in answer.json()["detail"]
    client.post("/p/desk/data/archive", {"restore": "1"})
    answer = api.post(
        "/api/v1/projects/desk/trajectories", body, content_type="application/json", headers=headers
    )
    assert answer.status_code == 200
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.PAUSED  # until a person opens it
    verbs = set(AuditEvent.objects.values_list("verb", flat=True))
    assert {"project.archived", "project.restored"} <= verbs


def test_deletion_asks_for_the_name_on_the_page(project: Project, owner: Any) -> None:
    client = signed_in(owner)
    wrong = client.post("/p/desk/data/delete", {"name": "dsek"})
    assert wrong.status_code == 422 and "Type the name" in wrong.content.decode()
    assert not ProjectDeletion.objects.exists()
    client.post("/p/desk/data/delete", {"name": "desk"})
    page = client.get("/p/desk/data/").content.decode()
    assert "is being deleted" in page and "Next in the queue" in page and "Open again" not in page


def test_rules_delete_what_is_old_and_keep_what_is_used(project: Project) -> None:
    for text in ("old", "new", "judged"):
        import_trajectories(project=project, stream=io.BytesIO(chat(text)), by=None)
    _, new, judged = Trajectory.objects.order_by("pk")
    campaign = Campaign.objects.create(project=project, name="Which", feedback_types=["comment"])
    item = Item.objects.create(campaign=campaign, task=judged.task, key="k", overlap=1)
    ItemTrajectory.objects.create(item=item, trajectory=judged, position=0)
    age(100)
    age(1, pk=new.pk)
    rule = rules(project, trajectory_days=90)
    found = retention.preview_retention(rule)
    assert (found.trajectories, found.in_campaigns, found.in_datasets) == (1, 1, 0)
    assert apply(project) == {"trajectories": 1, "samples": 0, "guard_decisions": 0, "exports": 0}
    assert set(Trajectory.objects.all()) == {new, judged}
    event = AuditEvent.objects.get(verb="retention.applied")
    assert event.data == {"trajectories": 1, "samples": 0, "guard_decisions": 0, "exports": 0}


def test_what_is_frozen_in_a_dataset_is_kept(project: Project) -> None:
    load(project, "pairs", json.dumps(PAIR))
    freeze(project)
    Item.objects.all().delete()  # the dataset has it still
    age(100)
    rule = rules(project, trajectory_days=90)
    found = retention.preview_retention(rule)
    assert (found.trajectories, found.in_datasets) == (0, 2)
    assert apply(project)["trajectories"] == 0
    assert Trajectory.objects.count() == 2


def test_samples_and_exports_have_their_own_days(project: Project) -> None:
    endpoint = Endpoint.objects.create(project=project, name="desk-reward")
    long_ago = timezone.now() - timedelta(days=40)
    for at in (long_ago, timezone.now()):
        ScoreSample.objects.create(endpoint=endpoint, version=1, caller="k", item={}, result={}, at=at)
    name = "exports/9/old.csv"
    storages["artifacts"].save(name, ContentFile(b"x"))
    Export.objects.create(
        project=project, format="csv", artifact=name, state=JobState.SUCCEEDED, finished_at=long_ago
    )
    rule = rules(project, sample_days=30, export_days=30)
    found = retention.preview_retention(rule)
    assert (found.trajectories, found.samples, found.exports) == (0, 1, 1)
    assert apply(project) == {"trajectories": 0, "samples": 1, "guard_decisions": 0, "exports": 1}
    assert not is_stored(name) and ScoreSample.objects.count() == 1


def test_beat_applies_the_rules_once_a_day(project: Project) -> None:
    rules(project)
    assert retention.start_due_retention() == 0  # nothing is to be deleted
    rules(project, sample_days=30)
    assert retention.start_due_retention() == 1 and retention.start_due_retention() == 0
    run = claim_next(RetentionRun)
    assert run is not None
    retention.apply_retention(run)
    assert retention.start_due_retention() == 0
    RetentionRule.objects.update(applied_at=timezone.now() - timedelta(hours=25))
    assert retention.start_due_retention() == 1


def test_owners_see_what_would_go_before_they_save(project: Project, owner: Any) -> None:
    import_trajectories(project=project, stream=io.BytesIO(chat("old")), by=None)
    age(100)
    client = signed_in(owner)
    preview = client.post("/p/desk/data/retention", {"trajectory_days": "90"})
    assert "would delete 1 trajectory" in preview.content.decode()
    assert not RetentionRule.objects.exists()
    client.post("/p/desk/data/retention", {"trajectory_days": "90", "save": "1"})
    assert RetentionRule.objects.get().trajectory_days == 90
    assert client.post("/p/desk/data/retention", {"trajectory_days": "0"}).status_code == 422


def test_an_archive_becomes_the_same_project_elsewhere(project: Project, owner: Any) -> None:
    rubric = save_rubric(
        project=project,
        name="Good",
        criteria=[
            CriterionDraft(name="polite", definition="Stays courteous."),
            CriterionDraft(
                name="failure",
                answer_type="categories",
                categories=[
                    {"name": "loop", "definition": "Repeats itself."},
                    {"name": "typo", "definition": ""},
                ],
            ),
        ],
    )
    create_campaign(
        project=project, name="Scores", feedback_types=["rubric", "category"], rubric=rubric, overlap=2
    )
    for format, record in RECORDS:
        load(project, format, json.dumps(record), campaign="First")
    version = freeze(project)
    Recipe.objects.create(project=project, name="mine", toml='objective = "bradley-terry"')
    rules(project, sample_days=30)
    set_masking(project=project, detectors=["emails"], by=None)
    waiting = add_waiting(project)
    archive = io.BytesIO()
    counts = write_project(project, archive)
    assert (counts["items"], counts["comments"], counts["views"], counts["views_left_out"]) == (1, 1, 1, 1)
    assert counts["questions_left_out"] == 1
    assert (counts["tags"], counts["subgoals"], counts["reward_programs"]) == (1, 1, 1)
    assert (counts["key_nodes"], counts["agent_references"]) == (1, 1)
    assert counts["judges_left_out"] == counts["reward_studies_left_out"] == 0
    assert counts["trajectories"] == Trajectory.objects.filter(project=project).count()
    moved, found = read_project(archive, owner=owner, slug="moved")
    assert (found["trajectories"], found["datasets"]) == (counts["trajectories"], 1)
    assert given(moved) == given(project)
    copy = moved.dataset_versions.get()
    assert (copy.content_hash, copy.records) == (version.content_hash, version.records)
    assert list(read_dataset_records(copy)) == list(read_dataset_records(version))
    campaign = moved.campaigns.get(name="Scores")
    assert (campaign.overlap, campaign.state, campaign.feedback_types) == (
        2,
        "paused",
        ["rubric", "category"],
    )
    assert (found["items"], found["comments"], found["views"]) == (1, 1, 1)
    item = campaign.items.get()
    assert (item.key, item.overlap, item.priority) == (waiting.key, 2, 3.0)
    assert [row.content_hash for row in item.trajectories.all()] == [
        row.content_hash for row in waiting.trajectories.all()
    ]
    assert (found["tags"], found["subgoals"], found["reward_programs"]) == (1, 1, 1)
    tagged = moved.trajectories.exclude(tags=[]).get()
    assert (tagged.tags, tagged.content_hash) == (["slow", "to do"], waiting.trajectories.get().content_hash)
    columns = ("task__external_id", "state", "subgoals")
    assert (
        moved.task_subgoals.values_list(*columns).get() == project.task_subgoals.values_list(*columns).get()
    )
    assert (found["key_nodes"], found["agent_references"]) == (1, 1)
    names = ("task__external_id", "nodes", "in_order")
    nodes = moved.task_key_nodes.values_list(*names).get()
    assert nodes == project.task_key_nodes.values_list(*names).get()
    columns = ("trajectory__content_hash", "state", "text", "accepted_text", "evidence")
    assert (
        moved.hindsight_tasks.values_list(*columns).get()
        == project.hindsight_tasks.values_list(*columns).get()
    )
    columns = ("endpoint__name", "rule", "action", "is_right", "at", "answered_at")
    assert found["guard_decisions"] == counts["guard_decisions"] == 1
    assert (
        GuardDecision.objects.filter(endpoint__project=moved).values_list(*columns).get()
        == GuardDecision.objects.filter(endpoint__project=project).values_list(*columns).get()
    )
    program = moved.reward_programs.get()
    original = project.reward_programs.get(version=2)
    assert (program.name, program.version, program.code, program.note) == ("constant", 2, original.code, "2")
    assert program.accepted_at is not None and program.dry_run_passed_at is None  # it has to pass here
    note = TrajectoryComment.objects.get(project=moved)
    assert note.text == "owner@example.org: Stops too early." and (note.step, note.author) == (0, None)
    assert note.trajectory.content_hash == item.trajectories.get().content_hash
    assert list(moved.saved_views.values_list("name", "query")) == [("Failed", "success=no")]
    assert campaign.rubric is not None
    assert campaign.rubric.criteria.get(name="failure").category_names == ["loop", "typo"]
    assert moved.recipes.get().toml == 'objective = "bradley-terry"'
    assert moved.import_masking.detectors == ["emails"] and moved.retention_rule.sample_days == 30
    with pytest.raises(DomainError, match="no archive of a project"):
        read_project(io.BytesIO(b"PK nothing"), owner=owner)


def test_owners_export_by_a_job_and_download(project: Project, owner: Any) -> None:
    client = signed_in(owner)
    client.post("/p/desk/data/export")
    client.post("/p/desk/data/export")
    export = claim_next(ProjectExport)
    assert export is not None
    build_project_export(export)
    page = client.get("/p/desk/data/").content.decode()
    assert f"Archive {export.pk}" in page
    answer = client.get(f"/p/desk/data/exports/{export.pk}/file")
    names = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))).namelist()  # type: ignore[attr-defined]
    assert {"manifest.json", "trajectories.jsonl", "feedback.jsonl"} <= set(names)
    ProjectExport.objects.update(finished_at=timezone.now() - timedelta(days=400))
    assert remove_old_project_exports() == 1
    assert client.get(f"/p/desk/data/exports/{export.pk}/file").status_code == 404


def test_a_preview_does_not_read_large_datasets(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    load(project, "pairs", json.dumps(PAIR))
    freeze(project)
    Item.objects.all().delete()
    age(100)
    monkeypatch.setattr(retention, "_MOST_READ", 0)
    found = retention.preview_retention(rules(project, trajectory_days=90))
    assert (found.trajectories, found.in_datasets) == (2, None)


def test_retention_withdraws_nothing_and_removes_files_with_what_it_deleted(project: Project) -> None:
    for number in range(5):
        import_trajectories(project=project, stream=io.BytesIO(chat(f"old {number}")), by=None)
    age(100)
    building = DatasetVersion.objects.create(project=project, name="d", version=1)
    of_feedback, of_trajectories = (
        Export.objects.create(
            project=project,
            format="csv",
            of_trajectories=whole,
            artifact=f"exports/{whole}.csv",
            state="succeeded",
        )
        for whole in (False, True)
    )
    archive = ProjectExport.objects.create(
        project=project, artifact="project-exports/1.zip", state="succeeded"
    )
    rules(project, trajectory_days=90)
    assert apply(project)["trajectories"] == 5 and not Trajectory.objects.exists()
    for row in (building, of_feedback, of_trajectories, archive):
        row.refresh_from_db()
    assert building.withdrawn_at is None and of_feedback.removed_at is None
    assert of_trajectories.removed_at is not None and archive.removed_at is not None


def test_a_cancelled_run_reports_what_it_deleted(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        import_trajectories(project=project, stream=io.BytesIO(chat(f"old {number}")), by=None)
    age(100)
    monkeypatch.setattr(retention, "DELETED_TOGETHER", 2)
    deleting = retention.delete_trajectories

    def delete_and_cancel(*args: Any) -> Any:
        monkeypatch.setattr(retention.job_queue.JobHeartbeat, "check", cancelled)
        return deleting(*args)

    def cancelled(heartbeat: Any) -> None:
        raise Cancelled

    monkeypatch.setattr(retention, "delete_trajectories", delete_and_cancel)
    rules(project, trajectory_days=90)
    retention.start_retention(project)
    run = claim_next(RetentionRun)
    assert run is not None
    retention.apply_retention(run)
    run.refresh_from_db()
    assert (run.state, run.error, run.result["trajectories"]) == (JobState.CANCELLED, "", 2)
    assert Trajectory.objects.count() == 1
    assert AuditEvent.objects.get(verb="retention.applied").data["trajectories"] == 2
    assert RetentionRule.objects.get().applied_at is None


def test_archives_have_their_days_and_go_with_what_a_person_gave(project: Project, owner: Any) -> None:
    load(project, "pairs", json.dumps(PAIR))
    name = "project-exports/1.zip"
    storages["artifacts"].save(name, ContentFile(b"x"))
    long_ago = timezone.now() - timedelta(days=40)
    old = ProjectExport.objects.create(
        project=project, artifact=name, state=JobState.SUCCEEDED, finished_at=long_ago
    )
    rule = rules(project, export_days=30)
    assert retention.preview_retention(rule).exports == 1
    assert apply(project)["exports"] == 1
    old.refresh_from_db()
    assert old.removed_at is not None

    done = ProjectExport.objects.create(project=project, artifact=name, state=JobState.SUCCEEDED)
    begun = ProjectExport.objects.create(project=project)
    erase_judgements(annotator=Annotator.objects.get(project=project), by=owner)
    for export in (done, begun):
        export.refresh_from_db()
    assert not done.is_there and begun.state == JobState.CANCELLED


def test_an_archive_that_ends_during_a_deletion_is_removed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = ProjectExport.objects.create(project=project)
    claimed = claim_next(ProjectExport)
    assert claimed is not None

    def delete_meanwhile(*args: Any) -> dict[str, int]:
        remove_project_exports(project)
        return {}

    monkeypatch.setattr(archive_jobs, "write_project", delete_meanwhile)
    build_project_export(claimed)
    export.refresh_from_db()
    assert not export.is_there and not (export.artifact and is_stored(export.artifact))


def test_an_archive_that_cannot_be_read_leaves_no_files(
    project: Project, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(project, "pairs", json.dumps(PAIR))
    freeze(project)
    archive = io.BytesIO()
    write_project(project, archive)
    before = stored_names()

    def refuse(**named: Any) -> None:
        assert stored_names() > before
        raise DomainError("no space")

    with monkeypatch.context() as patch, pytest.raises(DomainError, match="no space"):
        patch.setattr(project_archive, "record_audit", refuse)
        read_project(archive, owner=owner, slug="moved")
    assert stored_names() == before and not Project.objects.filter(slug="moved").exists()
    monkeypatch.setattr(project_archive, "MOST_UNPACKED", 1000)
    with pytest.raises(DomainError, match="GB together"):
        read_project(archive, owner=owner, slug="moved")


def test_a_damaged_archive_is_refused(project: Project, owner: Any) -> None:
    load(project, "pairs", json.dumps(PAIR))
    archive = io.BytesIO()
    write_project(project, archive)
    content = bytearray(archive.getvalue())
    with zipfile.ZipFile(archive) as names:
        start = names.getinfo("trajectories.jsonl").header_offset + 60
    content[start : start + 20] = b"\0" * 20
    with pytest.raises(DomainError, match="damaged"):
        read_project(io.BytesIO(bytes(content)), owner=owner, slug="moved")


def stored_names() -> set[str]:
    root = Path(storages["artifacts"].path(""))
    return {str(path) for path in root.rglob("*") if path.is_file()}
