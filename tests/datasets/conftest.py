from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from apps.accounts.models import Project
from apps.datasets.models import DatasetVersion
from tests.datasets.feedback import freeze, import_pairs, pair
from tests.datasets.trap_feedback import import_traps
from tests.worlds import home_settings, rows_of_a_module


@pytest.fixture
def judged(project: Project) -> Project:
    """Twelve tasks, a comparison each."""
    import_pairs(project, [pair(f"task-{n}") for n in range(12)])
    return project


@pytest.fixture(scope="module")
def trap_rows(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DatasetVersion]:
    """Rows that trainers get wrong, frozen once for a file that overrides `project` with theirs and never commits."""
    home = override_settings(**home_settings(tmp_path_factory.mktemp("home")))
    with home, rows_of_a_module(django_db_blocker):
        project = Project.objects.create(slug="desk", name="Desk")
        import_traps(project)
        yield freeze(project, test_tasks=["ranked"])


@pytest.fixture
def traps(trap_rows: DatasetVersion, db: None) -> DatasetVersion:
    return DatasetVersion.objects.get(pk=trap_rows.pk)
