"""No page asks the database more often because there is more to list."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.http import FileResponse
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Role
from apps.annotation.models import Annotation, Assignment, Comment, Preference
from tests.config.row_copies import copy_rows
from tests.config.tables import HERS, PAGES, ROLES, SIGNED_IN
from tests.config.world import World, filled, make_world
from tests.worlds import home_settings

ROWS = 40
MOST_MORE = 2  # statements of a page with 40 rows of everything, beyond those with one
LISTED = [
    path
    for path, (method, audience) in PAGES.items()
    if method == "GET" and (audience in (HERS, SIGNED_IN) or audience in ROLES)
]


@pytest.fixture
def world(db: None, tmp_path: Any) -> Iterator[World]:
    with override_settings(**home_settings(tmp_path)):
        world = make_world("desk")
        held = Assignment.objects.get(pk=world.names["items"])
        Assignment.objects.filter(pk=held.pk).update(finished_at=timezone.now(), active_seconds=3.0)
        annotation = Annotation.objects.create(assignment=held)
        Preference.objects.create(annotation=annotation, choice="a", strength=2)
        Comment.objects.create(annotation=annotation, trajectory_id=world.names["trajectories"], text="Rude.")
        yield world


@pytest.fixture
def clients(world: World) -> dict[Role, Client]:
    """Signed in once: to sign in takes as long as a page."""
    clients = {role: Client(raise_request_exception=False) for role in (Role.ANNOTATOR, Role.OWNER)}
    for role, client in clients.items():
        client.force_login(world.people[role])
    return clients


def statements(world: World, clients: dict[Role, Client], path: str) -> tuple[int, list[str]]:
    client = clients[Role.ANNOTATOR if PAGES[path][1] == HERS or path.endswith("/history/") else Role.OWNER]
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(filled(path, world.names, "desk"))
        if isinstance(answer, FileResponse):
            b"".join(answer.streaming_content)
            for close in answer._resource_closers:
                close()
    return answer.status_code, [query["sql"] for query in captured.captured_queries]


def test_a_page_of_many_rows_takes_as_many_statements_as_one_of_one(
    world: World, clients: dict[Role, Client]
) -> None:
    before = {path: statements(world, clients, path) for path in LISTED}
    copied = copy_rows(world.project, ROWS - 1)
    assert len(copied) > 55, copied
    grown = []
    for path, (status, few) in before.items():
        after, many = statements(world, clients, path)
        assert after == status, path
        if len(many) > len(few) + MOST_MORE:
            grown.append(
                f"{path}: {len(few)} statements with 1 row, {len(many)} with {ROWS}: {_repeated(many)}"
            )
    assert not grown, "\n".join(grown)


def _repeated(many: list[str]) -> str:
    """The start of the statement that is repeated most."""
    starts = [sql.split("WHERE")[0][:60] + " ... " + sql.partition("FROM")[2][:160] for sql in many]
    return max(set(starts), key=starts.count)
