"""Deleting what someone judged, or a run: rows and drafts at once, datasets withdrawn, their files in time."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from apps.accounts.models import AuditEvent, Project, User
from apps.annotation import services
from apps.annotation.feedback.exports import export_jsonl
from apps.annotation.models import Annotation, Annotator, Assignment, Campaign, Item
from apps.core.errors import DomainError
from apps.datasets.erasure import erase_judgements, erase_trajectory, plan_erasure, remove_withdrawn
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder, find_dataset_version
from apps.trajectories.attachments import file_name
from apps.trajectories.models import Attachment, Step, Task, Trajectory
from tests.annotation import rows
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.factories import make_member


def exported(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export_jsonl(project=project, filters={})]


pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def judged(project: Project) -> Project:
    import_pairs(project, [pair(task, annotator=name) for task in "xyz" for name in ("ann", "ben")])
    return project


def test_somebodys_judgements_go_and_the_datasets_with_them_are_withdrawn(judged: Project) -> None:
    both, only_ben = freeze(judged, "both"), freeze(judged, "ben", filters={"annotators": ["ben"]})
    annotator = Annotator.objects.get(name="ann")
    assert plan_erasure(annotator) == erase_judgements(annotator=annotator, by=None)
    assert {line["annotator"] for line in exported(judged)} == {"ben"}
    assert not Annotator.objects.filter(name="ann").exists()
    assert set(Item.objects.values_list("claimed_count", "completed_count")) == {(1, 1)}
    both.refresh_from_db()
    only_ben.refresh_from_db()
    assert (both.withdrawn_at is None, only_ben.withdrawn_at is None) == (False, True)
    with pytest.raises(DomainError, match="withdrawn"):
        find_dataset_version("desk/both@1")
    assert find_dataset_version("desk/ben") == only_ben
    told = AuditEvent.objects.get(verb="judgements.deleted")
    assert (
        told.data == {"judgements": 3, "items": 3, "datasets": ["both@1"], "models": []}
        and told.target != "ann"
    )


def test_files_are_removed_when_their_time_has_come(judged: Project, settings: Any) -> None:
    dataset_version = freeze(judged)
    folder = data_folder(dataset_version)
    erase_judgements(annotator=Annotator.objects.get(name="ann"), by=None)
    settings.RETENTION_DAYS = 30
    assert remove_withdrawn() == 0 and folder.exists()
    DatasetVersion.objects.update(withdrawn_at=timezone.now() - timedelta(days=31))
    assert remove_withdrawn() == 1 and not folder.exists()
    assert remove_withdrawn() == 0
    dataset_version.refresh_from_db()
    assert dataset_version.annotators == {} and dataset_version.removed_at is not None


def test_a_dataset_that_is_being_frozen_is_withdrawn_too(judged: Project) -> None:
    waiting = DatasetVersion.objects.create(project=judged, name="later", version=1)
    assert erase_judgements(annotator=Annotator.objects.get(name="ann"), by=None).dataset_versions == (
        "later@1",
    )
    waiting.refresh_from_db()
    assert waiting.withdrawn_at is not None


def test_drafts_and_gold_she_decided_go(project: Project) -> None:
    campaign = services.create_campaign(project=project, name="Gold", feedback_types=["pairwise"], overlap=2)
    researcher, annotator = (
        make_member(project, "rose@example.org", "reviewer"),
        make_member(project, "ann@example.org", "annotator"),
    )
    item = rows.pair(campaign, "one")
    hers = rows.annotator(campaign, researcher)
    rows.submit(services.start_adjudication(item=item, annotator=hers), researcher)
    services.set_item_purpose(item=item, purpose="gold", explanation="So.", by=researcher)
    rows.pair(campaign, "two")
    held = rows.leased(campaign, researcher)
    Assignment.objects.filter(pk=held.pk).update(draft={"choice": "tie"})
    erase_judgements(annotator=hers, by=researcher)
    assert not Assignment.objects.exists()
    item.refresh_from_db()
    assert (item.purpose, item.explanation, item.overlap, item.claimed_count) == ("work", "", 2, 0)
    assert Annotator.objects.filter(pk=hers.pk).exists()  # she is a member, and may judge again
    rows.assert_counts_are_right(campaign)
    assert rows.lease(campaign, annotator) is not None


def test_a_run_goes_with_what_was_said_of_it(judged: Project) -> None:
    dataset_version = freeze(judged)
    later = freeze(judged, "only", filters={"kinds": ["pairwise"]})
    run = Trajectory.objects.filter(task__external_id="x").earliest("pk")
    planned = plan_erasure(run)
    assert erase_trajectory(trajectory=run, by=None) == planned
    assert (planned.judgements, planned.items, planned.dataset_versions) == (2, 1, ("first@1", "only@1"))
    assert {line["task"]["id"] for line in exported(judged)} == {"y", "z"}
    assert Annotation.objects.count() == 4 and dataset_version.pk != later.pk
    other = Trajectory.objects.get(task__external_id="x")
    assert erase_trajectory(trajectory=other, by=None).dataset_versions == ()  # they are withdrawn already
    assert not Task.objects.filter(external_id="x").exists()


def test_a_dataset_without_the_run_stays(judged: Project) -> None:
    freeze(judged, "of-ben", filters={"annotators": ["ben"]})
    task = Task.objects.create(project=judged, external_id="new")
    run = rows.trajectory(task, "hello")
    Trajectory.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=1))
    run.refresh_from_db()
    assert erase_trajectory(trajectory=run, by=None).dataset_versions == ()


def test_a_picture_goes_with_the_last_run_that_shows_it(project: Project) -> None:
    task = Task.objects.create(project=project, external_id="one")
    runs = [rows.trajectory(task, name) for name in ("a", "b")]
    digest = "ab" * 32
    part = {
        "type": "image",
        "text": None,
        "source": f"sha256:{digest}",
        "media_type": "image/png",
        "extra": {},
    }
    Step.objects.filter(trajectory__in=runs, index=1).update(message=[part])
    Attachment.objects.create(project=project, sha256=digest, media_type="image/png", size=1)
    name = storages["artifacts"].save(file_name(project.pk, digest), ContentFile(b"x"))
    erase_trajectory(trajectory=runs[0], by=None)
    assert Attachment.objects.exists() and storages["artifacts"].exists(name)
    erase_trajectory(trajectory=runs[1], by=None)
    assert not Attachment.objects.exists() and not storages["artifacts"].exists(name)


def test_the_page_says_first_what_goes(judged: Project, client: Client) -> None:
    owner: User = make_member(judged, "olga@example.org", "owner")
    client.force_login(owner)
    annotator = Annotator.objects.get(name="ann")
    assert client.post("/p/desk/datasets/erase/", {}).status_code == 422
    both = {"annotator": annotator.pk, "run": Trajectory.objects.earliest("pk").pk}
    assert client.post("/p/desk/datasets/erase/", both).status_code == 422
    assert client.post("/p/desk/datasets/erase/", {"run": "999999"}).status_code == 422
    shown = client.post("/p/desk/datasets/erase/", {"annotator": annotator.pk}).content.decode()
    assert "Annotations of ann" in shown and Annotation.objects.count() == 6
    client.post("/p/desk/datasets/erase/", {"annotator": annotator.pk, "run": "", "sure": "1"})
    assert Annotation.objects.count() == 3


def test_a_withdrawn_dataset_offers_nothing_any_more(judged: Project, client: Client) -> None:
    dataset_version = freeze(judged)
    client.force_login(make_member(judged, "rose@example.org", "researcher"))
    page, export = (
        f"/p/desk/datasets/{dataset_version.pk}/",
        f"/p/desk/datasets/{dataset_version.pk}/export/trl/",
    )
    before = client.get(page).content.decode()
    assert export in before and "Train model" in before
    erase_judgements(annotator=Annotator.objects.get(name="ann"), by=None)
    after = client.get(page).content.decode()
    assert "withdrawn: annotations in it were deleted" in after
    assert export not in after and "Train model" not in after
    assert client.get(export).status_code == 409
    assert "withdrawn" in client.get("/p/desk/datasets/").content.decode()


def test_the_command_does_it_only_when_told_so(judged: Project) -> None:
    out = StringIO()
    call_command("erase", "desk", "--annotator", "ann", "--json", stdout=out)
    assert json.loads(out.getvalue()) == {
        "deleted": False,
        "judgements": 3,
        "items": 3,
        "page_comments": 0,
        "withdrawn": [],
        "models": [],
    }
    call_command(
        "erase",
        "desk",
        "--run",
        str(Trajectory.objects.earliest("pk").pk),
        "--yes",
        "--json",
        stdout=StringIO(),
    )
    assert Campaign.objects.get().items.count() == 2


def test_a_person_with_an_account_and_an_imported_name_goes_whole(judged: Project, annotator: User) -> None:
    """An import under the name of someone with an account is by a second annotator of that name."""
    Annotator.objects.filter(name="ben").update(user=annotator)
    import_pairs(judged, [pair("x", annotator="ben", choice="b"), pair("new", annotator="ben")])
    assert Annotator.objects.filter(name="ben").count() == 2
    freeze(judged)
    out = StringIO()
    call_command("erase", "desk", "--annotator", "ben", "--json", stdout=out)
    assert json.loads(out.getvalue())["judgements"] == 5
    call_command("erase", "desk", "--annotator", "ben", "--yes", stdout=StringIO())
    assert {line["annotator"] for line in exported(judged)} == {"ann"}
    assert Annotation.objects.count() == 3
    assert list(Annotator.objects.values_list("name", "user")) == [("ann", None), ("ben", annotator.pk)]
    out = StringIO()
    call_command("erase", "desk", "--annotator", "ben", "--json", stdout=out)
    assert json.loads(out.getvalue()) == {
        "deleted": False,
        "judgements": 0,
        "items": 0,
        "page_comments": 0,
        "withdrawn": [],
        "models": [],
    }
