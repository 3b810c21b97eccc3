from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.models import Project, User
from apps.llm.models import LLMConnection
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from benchmarks.rule_judge import judged
from tests.factories import make_member
from tests.judges import parcels
from tests.workers.llm.scripted import Script, scripted


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(judged)


@pytest.fixture
def rules(project: Project, script: Script) -> Iterator[LLMConnection]:
    """A language model that counts failures, in a project where people have judged."""
    parcels.rubric(project)
    parcels.say(project)
    with scripted(script) as url:
        spec = LLMConnectionSpec(name="rules", base_url=url, model="rules")
        yield create_llm_connection(project=project, spec=spec, key="sk-canary", by=None)


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", "owner")


@pytest.fixture(autouse=True)
def quick_children(forked_children: None) -> None:
    """As all of these are."""
