from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from apps.accounts.models import Project, User
from apps.llm.models import LLMConnection
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from benchmarks.rule_judge import judged
from tests.factories import make_member
from tests.judges import parcels
from tests.workers.llm.scripted import Script, scripted
from tests.worlds import home_settings, rows_of_a_module


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(judged)


@pytest.fixture
def annotated_project(project: Project) -> Project:
    """Where people have judged."""
    return parcels.annotate(project)


@pytest.fixture(scope="module")
def annotated_rows(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """The annotated project once for a file none of whose tests commits: it overrides `project` with this one, and
    has `annotated_project` give it as it is."""
    home = override_settings(**home_settings(tmp_path_factory.mktemp("home")))
    with home, rows_of_a_module(django_db_blocker):
        yield parcels.annotate(Project.objects.create(slug="desk", name="Desk"))


@pytest.fixture
def rules(annotated_project: Project, script: Script) -> Iterator[LLMConnection]:
    """A language model that counts failures, in a project where people have judged."""
    with scripted(script) as url:
        spec = LLMConnectionSpec(name="rules", base_url=url, model="rules")
        yield create_llm_connection(project=annotated_project, spec=spec, key="sk-canary", by=None)


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", "owner")


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
