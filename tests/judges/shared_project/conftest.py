"""Tests that share one annotated project in each file: none of them commits, so what a test changes is rolled back."""

import pytest

from apps.accounts.models import Project


@pytest.fixture
def project(annotated_rows: Project, db: None) -> Project:
    return Project.objects.get(pk=annotated_rows.pk)


@pytest.fixture
def annotated_project(project: Project) -> Project:
    return project
