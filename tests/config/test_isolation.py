"""Two projects with one name for everything: nothing of one is in any page, answer, file, error or log of the other.

Every URL of the installation is asked by an owner of one project and by its keys, for its own objects and for those of
the other; texts of the other are marked so that they are recognised wherever they come up.
"""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db.models import Model
from django.http import FileResponse
from django.test import Client, override_settings

from apps.accounts.models import Scope
from apps.accounts.services import create_api_key
from apps.datasets.models import Export
from apps.rewards.models import Endpoint
from tests.config.tables import CALLS, HERS, PAGES, body_for
from tests.config.world import World, filled, make_world
from tests.worlds import home_settings, rows_of_a_module

MARK = "xyzzy-of-the-other"
# Texts of each project's own. A column that is JSON gets a document with the mark in it.
TEXTS: list[tuple[str, str]] = [
    ("trajectories.Task", "instruction"),
    ("trajectories.Trajectory", "agent_name"),
    ("trajectories.Trajectory", "agent_version"),
    ("trajectories.Step", "reasoning"),
    ("trajectories.Import", "filename"),
    ("trajectories.SavedView", "query"),
    ("annotation.Campaign", "guidelines"),
    ("annotation.Annotator", "name"),
    ("annotation.Assignment", "reason"),
    ("rubrics.Rubric", "about"),
    ("rubrics.Criterion", "definition"),
    ("training.TrainingRun", "error"),
    ("training.ModelImport", "error"),
    ("metrics.Metric", "definition"),
    ("llm.LLMConnection", "model"),
    ("bulk.BulkJob", "error"),
    ("questions.TrajectoryQuestion", "text"),
    ("questions.QuestionAnswer", "explanation"),
    ("policy_documents.PolicyVersion", "text"),
    ("policy_documents.PolicyRule", "statement"),
    ("policy_documents.PolicySplit", "error"),
    ("reward_programs.RewardProgramVersion", "code"),
    ("reward_programs.RewardProgramJob", "error"),
    ("reward_studies.RewardStudy", "error"),
    ("subgoals.SubgoalProposal", "error"),
    ("hindsight.HindsightProposal", "error"),
    ("hindsight.HindsightTask", "text"),
    ("machines.Machine", "name"),
    ("machines.MachineJob", "log"),
    ("connectors.Connector", "address"),
    ("connectors.ConnectorRun", "error"),
    ("accounts.Invitation", "email"),
]
DOCUMENTS: list[tuple[str, str]] = [
    ("trajectories.Trajectory", "metadata"),
    ("training.Evaluation", "report"),
    ("training.RewardModel", "manifest"),
    ("rewards.ScoreSample", "item"),
    ("webhooks.Delivery", "data"),
]


def mark_rows_since(before: dict[type[Model], set[Any]]) -> int:
    """Put the mark into the texts of all rows that were not there `before`; how many rows have it."""
    marked = 0
    for label, column in TEXTS + DOCUMENTS:
        model = apps.get_model(label)
        if column not in {field.name for field in model._meta.get_fields()}:
            raise AssertionError(f"{label} has no {column} any more: mark another text of it.")
        rows = model._default_manager.exclude(pk__in=before[model])
        value: Any = MARK if (label, column) in TEXTS else {"text": MARK}
        marked += rows.update(**{column: value})
    return marked


@pytest.fixture(scope="module")
def worlds(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, World]]:
    """`desk`, who asks, and `elsewhere`, whose texts are marked: once for this file."""
    home = override_settings(**home_settings(tmp_path_factory.mktemp("home")))
    with home, rows_of_a_module(django_db_blocker):
        yield _marked_worlds()


def _marked_worlds() -> tuple[World, World]:
    desk = make_world("desk")
    before = {model: set(model._default_manager.values_list("pk", flat=True)) for model in apps.get_models()}
    other = make_world("elsewhere")
    assert mark_rows_since(before) >= len(TEXTS)
    export = Export.objects.get(project=other.project)
    storages["artifacts"].delete(export.artifact)
    storages["artifacts"].save(export.artifact, ContentFile(MARK.encode()))
    Endpoint.objects.update(name="reward")
    for world in (desk, other):
        world.names |= {"endpoints": "reward", "of": "reward"}
    return desk, other


def whole(answer: Any) -> str:
    """Headers and body of an answer, as far as they are text."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    if isinstance(answer, FileResponse):
        for close in answer._resource_closers:
            close()
    return f"{answer.headers}\n{body.decode('utf-8', 'replace')}"


def test_pages(worlds: tuple[World, World], db: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk, other = worlds
    clients = {}
    for role in ("owner", "annotator"):
        clients[role] = Client(raise_request_exception=False)
        clients[role].force_login(desk.people[role])
    asked = 0
    for path, (method, least) in PAGES.items():
        if path in ("logout", "login") or path.startswith("oidc/") or "accounts/" in path:
            continue
        for names in (desk.names, other.names):
            if "<str:token>" in path and names is other.names:
                continue  # a secret of the other's: whoever holds it is shown what it is for
            # What changes something is asked for what is the other's only: `desk` stays as it is.
            if method != "GET" and names is desk.names:
                continue
            for role in ("annotator",) if least == HERS else ("owner", "annotator"):
                answer = clients[role].generic(method, filled(path, names, "desk"))
                assert answer.status_code != 500, (path, role)
                assert MARK not in whole(answer), (path, role)
                asked += 1
    assert asked > 300
    assert MARK not in caplog.text


def test_calls(worlds: tuple[World, World], db: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk, other = worlds
    secret = create_api_key(project=desk.project, scopes=list(Scope.values), by=None)[1]
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})
    for method, path in CALLS:
        for names in (desk.names, other.names):
            if method != "GET" and names is desk.names:
                continue
            # Bodies name the other's objects too.
            body = json.dumps(body_for(path) if method != "GET" else "")
            body = body.replace("HERE", str(other.names["trajectories"]))
            for slug in ("desk", "elsewhere"):
                answer = client.generic(
                    method, filled(path, names, slug), body, content_type="application/json"
                )
                assert answer.status_code != 500, (method, path, slug)
                assert MARK not in whole(answer), (method, path, slug)
    assert MARK not in caplog.text


def test_the_mark_is_there_for_those_whose_it_is(worlds: tuple[World, World], db: None) -> None:
    """Else the two tests above could not fail."""
    _, other = worlds
    client = Client()
    client.force_login(other.people["owner"])
    seen = 0
    for path, (method, _) in PAGES.items():
        if method == "GET" and path.startswith("p/"):
            seen += MARK in whole(client.get(filled(path, other.names, "elsewhere")))
    assert seen >= 10
