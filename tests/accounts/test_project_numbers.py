"""Numbers of a project's own rows: from 1, in order, once, whoever inserts them and however many at a time."""

import threading
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts import project_numbers
from apps.accounts.models import Project, ProjectSequence
from apps.datasets.models import Export
from apps.trajectories.models import Trajectory
from tests.trajectories.conftest import record
from tests.trajectories.test_views import bring

TABLE = "datasets_export"


@pytest.fixture
def two(db: None) -> tuple[Project, Project]:
    first, second = (Project.objects.create(slug=slug, name=slug) for slug in ("first", "second"))
    return first, second


def numbers(project: Project) -> list[int]:
    return list(Export.objects.filter(project=project).order_by("pk").values_list("number", flat=True))


def test_each_project_begins_with_1(two: tuple[Project, Project]) -> None:
    first, second = two
    made = [Export.objects.create(project=project) for project in (first, second, first, first, second)]
    assert [export.number for export in made] == [1, 1, 2, 3, 2], (
        "the row knows its number once it is created"
    )
    made[3].delete()
    made = Export.objects.bulk_create([Export(project=first), Export(project=second), Export(project=first)])
    assert [export.number for export in made] == [4, 3, 5], "a number is not used again"


def test_what_was_rolled_back_leaves_no_gap(two: tuple[Project, Project]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Export.objects.create(project=two[0])
        Export.objects.create(project=two[0], number=1)
    assert Export.objects.create(project=two[0]).number == 1


def test_imported_trajectories_are_numbered_in_their_order(two: tuple[Project, Project]) -> None:
    bring(two[1], record(1))
    bring(two[0], record(1), record(2), record(3))
    bring(two[0], record(2), record(4))
    rows = Trajectory.objects.filter(project=two[0]).order_by("pk")
    assert list(rows.values_list("number", "task__external_id")) == [
        (1, "task-1"),
        (2, "task-2"),
        (3, "task-3"),
        (4, "task-4"),
    ]


def test_a_migration_numbers_what_is_there(
    two: tuple[Project, Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    for project in (first, second, first, first, second, first, first):
        Export.objects.create(project=project)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {TABLE} SET number = number + 1000")
    ProjectSequence.objects.all().delete()
    monkeypatch.setattr(project_numbers, "_BATCH", 2)
    fill, _ = project_numbers.number_rows(TABLE)
    fill.code(None, SimpleNamespace(connection=connection))
    assert numbers(first) == [1, 2, 3, 4, 5] and numbers(second) == [1, 2]
    assert Export.objects.create(project=first).number == 6


@pytest.mark.django_db(transaction=True)
def test_rows_created_together_have_different_numbers() -> None:
    project = Project.objects.create(slug="together", name="together")
    start = threading.Barrier(4)

    def create() -> None:
        try:
            start.wait(10)
            for _ in range(5):
                with transaction.atomic():
                    Export.objects.create(project=project)
        finally:
            connection.close()

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(project)) == list(range(1, 21))
