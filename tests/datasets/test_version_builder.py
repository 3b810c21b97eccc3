import pytest
from django.db import connection

from apps.accounts.models import AuditEvent, Project
from apps.annotation.models import Annotation
from apps.core.errors import DomainError, NotFound
from apps.core.jobs import job_queue
from apps.core.storage.artifacts import stage
from apps.datasets import tasks
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder, find_dataset_version, read_dataset_records
from apps.datasets.services import cancel_dataset_version, freeze_dataset
from apps.datasets.statistics import record_task
from apps.datasets.version_builder import build_dataset_version
from tests.datasets.feedback import freeze, import_pairs, pair
from workers.schema import Trajectory
from workers.schema.contamination import find_contamination


def test_a_dataset_version_holds_every_record_once_and_no_task_twice(judged: Project) -> None:
    dataset_version = freeze(judged)
    assert dataset_version.state == job_queue.JobState.SUCCEEDED
    tasks_of = {
        split: {record_task(record) for record in read_dataset_records(dataset_version, split)}
        for split in dataset_version.splits
    }
    assert sum(len(each) for each in tasks_of.values()) == len(set.union(*tasks_of.values())) == 12
    assert (
        {split: len(found) for split, found in tasks_of.items()}
        == dataset_version.tasks
        == dataset_version.splits
    )
    assert dataset_version.records == {"pairwise": 12}
    assert dataset_version.usable_pairs == 12
    assert dataset_version.annotators == {
        "ann": {"records": 12, "strict_reliability": None, "origins": ["imported"]}
    }


def test_the_same_feedback_has_the_same_hash_wherever_it_is(judged: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    import_pairs(other, [pair(f"task-{n}") for n in reversed(range(12))])
    first, again, elsewhere = freeze(judged), freeze(judged), freeze(other)
    assert first.content_hash == again.content_hash == elsewhere.content_hash
    assert (first.version, again.version, elsewhere.version) == (1, 2, 1)
    import_pairs(judged, [pair("task-0", annotator="ben")])
    assert freeze(judged).content_hash != first.content_hash


def test_a_frozen_dataset_version_does_not_change(judged: Project) -> None:
    dataset_version = freeze(judged)
    before = {path.name: path.read_bytes() for path in data_folder(dataset_version).iterdir()}
    import_pairs(judged, [pair("task-1", choice="b", annotator="ben")])
    freeze(judged)
    assert {path.name: path.read_bytes() for path in data_folder(dataset_version).iterdir()} == before


def test_records_carry_the_annotators_strict_reliability(project: Project) -> None:
    import_pairs(
        project,
        [
            pair(task, annotator=name, choice=choice)
            for task in ("one", "two")
            for name, choice in [("ann", "a"), ("ben", "a"), ("cid", "a"), ("dov", "b"), ("eve", "tie")]
        ],
    )
    dataset_version = freeze(project)
    # Everyone agrees with the others or contradicts them: q is 1, or that of 2 wrong answers, 4 / (4 + 2).
    assert {name: annotator["strict_reliability"] for name, annotator in dataset_version.annotators.items()} == {
        "ann": 1.0, "ben": 1.0, "cid": 1.0, "dov": pytest.approx(4 / 6), "eve": None,
    }  # fmt: skip
    known = {record.annotator: record.strict_reliability for record in read_dataset_records(dataset_version)}  # type: ignore[union-attr]
    assert known["dov"] == pytest.approx(4 / 6)


def test_given_test_tasks(judged: Project) -> None:
    dataset_version = freeze(judged, test_tasks=["task-2", "task-7"])
    assert {record_task(record) for record in read_dataset_records(dataset_version, "test")} == {
        "task-2",
        "task-7",
    }


def test_filters_choose(judged: Project) -> None:
    import_pairs(judged, [pair("task-0", annotator="ben")])
    assert freeze(judged, filters={"annotators": ["ben"]}).records == {"pairwise": 1}
    with pytest.raises(DomainError, match="Unknown kind 'likes'"):
        freeze(judged, filters={"kinds": ["likes"]})


def test_nothing_to_freeze_says_so_and_is_kept_as_failed(project: Project) -> None:
    with pytest.raises(DomainError, match="No feedback matches the filters"):
        freeze(project)
    failed = DatasetVersion.objects.get()
    assert failed.state == job_queue.JobState.FAILED
    assert "No feedback matches the filters" in failed.error


def test_a_bad_name_makes_nothing(judged: Project) -> None:
    with pytest.raises(DomainError, match="cannot be the name of a dataset"):
        freeze(judged, name="first@2")
    assert not DatasetVersion.objects.exists()


def test_a_worker_builds_what_waits(judged: Project) -> None:
    waiting = [freeze_dataset(project=judged, name=name, by=None) for name in ("one", "two")]
    tasks.advance_dataset_versions()
    for dataset_version in waiting:
        dataset_version.refresh_from_db()
        assert dataset_version.state == job_queue.JobState.SUCCEEDED
    tasks.advance_dataset_versions()  # nothing waits: nothing happens
    assert DatasetVersion.objects.count() == 2


def test_a_worker_survives_what_cannot_be_frozen(project: Project) -> None:
    dataset_version = freeze_dataset(project=project, name="empty", by=None)
    tasks.advance_dataset_versions()
    dataset_version.refresh_from_db()
    assert (dataset_version.state, dataset_version.attempt) == (job_queue.JobState.FAILED, 1)


def test_an_attempt_that_lost_its_claim_leaves_nothing(judged: Project) -> None:
    dataset_version = freeze_dataset(project=judged, name="first", by=None, claimed=True)
    DatasetVersion.objects.filter(pk=dataset_version.pk).update(attempt=2)
    with pytest.raises(job_queue.ClaimLost):
        build_dataset_version(dataset_version)
    with pytest.raises(NotFound):
        stage(f"snapshots/{dataset_version.pk}-1")


def test_the_planner_knows_what_there_is_to_read(judged: Project) -> None:
    """Else a table that was vacuumed while it was empty is taken for empty, and the read is quadratic."""
    freeze(judged)
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'annotation_annotation'")
        assert cursor.fetchone() == (Annotation.objects.count(),)


def test_a_cancelled_one_ends(judged: Project) -> None:
    running = freeze_dataset(project=judged, name="first", by=None, claimed=True)
    cancel_dataset_version(dataset_version=running, by=None)
    build_dataset_version(running)
    assert running.state == job_queue.JobState.CANCELLED
    waiting = freeze_dataset(project=judged, name="first", by=None)
    assert cancel_dataset_version(dataset_version=waiting, by=None).state == job_queue.JobState.CANCELLED


def test_a_name_finds_its_newest_frozen_version(judged: Project) -> None:
    first, second = freeze(judged), freeze(judged)
    waiting = freeze_dataset(project=judged, name="first", by=None)
    assert find_dataset_version("desk/first") == second
    assert find_dataset_version("first@1", project=judged) == first
    with pytest.raises(DomainError, match="is queued"):
        find_dataset_version(str(waiting))
    with pytest.raises(NotFound, match="freeze_dataset desk second"):
        find_dataset_version("desk/second")


def test_it_is_in_the_audit_trail(judged: Project) -> None:
    freeze(judged)
    assert AuditEvent.objects.filter(project=judged, verb="dataset.frozen", target="desk/first@1").exists()


def test_leaks_are_those_of_the_records_in_the_files(project: Project) -> None:
    """Of judges in the test split too, whose labels are left out: they count for nothing there."""
    words = "the order was sent by the carrier this morning and arrives tomorrow before noon"
    rows = [
        pair(
            f"task-{number % 30}",
            annotator=name,
            a={"prompt": f"{words} {number % 3}", "response": words + end},
        )
        for number, (name, end) in enumerate([("ann", " once"), ("ben", " twice"), ("ann", "")] * 20)
    ]
    import_pairs(project, rows)
    judged = Annotation.objects.filter(assignment__annotator__name="ben")
    judged.update(origin="judge")
    version = freeze(project, filters={"origins": ["imported", "judge"]})
    assert version.splits["test"] < Annotation.objects.count() / 4
    splits = {split: list(read_dataset_records(version, split)) for split in version.splits}
    expected = find_contamination(splits["train"], [*splits["validation"], *splits["test"]])
    assert version.leaks == expected and expected["near_copies"] > 0


def test_each_trajectory_is_hashed_once(judged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ben", "cid", "dov"):
        import_pairs(judged, [pair(f"task-{number}", annotator=name) for number in range(12)])
    hashed: list[str] = []
    calculate = Trajectory.content_hash.func  # type: ignore[attr-defined]

    def count(trajectory: Trajectory) -> str:
        hashed.append(calculate(trajectory))
        return hashed[-1]

    monkeypatch.setattr(Trajectory.content_hash, "func", count)
    freeze(judged)
    assert len(hashed) == len(set(hashed)) == 24
