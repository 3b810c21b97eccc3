"""Tables of list pages: order, filters, pages, chosen columns, files; over stored rows and rows in memory alike."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project, User
from apps.core.models import TableDisplay
from apps.core.tables import DataTable, TableAction, TableColumn, TableFilter, row_pages
from apps.trajectories.models import Task, Trajectory

LIST = "/p/desk/trajectories/"


class WorkerTable(DataTable[dict[str, Any]]):
    name = "workers-of-a-test"
    nouns = ("worker", "workers")
    columns = (
        TableColumn("name", "Name", sort="name", is_fixed=True),
        TableColumn("load", "Load", sort="load", kind="number"),
        TableColumn("place", "Place", value="host.place", is_shown=False),
    )
    default_sort = "name"
    search = ("name",)
    filters = (TableFilter("busy", "Busy", [("yes", "Yes"), ("no", "No")], "busy"),)
    actions = (TableAction("stop", "Stop", "/stop", roles=("owner",)), TableAction("see", "See", "/see"))

    def row_key(self, row: dict[str, Any]) -> str:
        return str(row["name"])


ROWS = [
    {"name": "b", "load": 2.0, "busy": "yes", "host": None},
    {"name": "a", "load": None, "busy": "no", "host": {"place": "here"}},
    {"name": "c", "load": 10.0, "busy": "yes", "host": {"place": "=1+1"}},
]


def asked(user: User, query: str = "", role: str = "") -> HttpRequest:
    request = RequestFactory().get(f"/list/?{query}")
    request.user = user
    if role:
        request.membership = type("Member", (), {"role": role})  # type: ignore[attr-defined]
    return request


def names(table: DataTable[Any]) -> list[str]:
    return [line.key for line in table.body]


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="desk", name="Desk")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "abc"),
        ("sort=-name", "cba"),
        ("sort=load", "bca"),
        ("sort=-load", "cba"),
        ("q=A", "a"),
        ("busy=yes", "bc"),
        ("busy=yes&q=c", "c"),
        ("busy=perhaps", ""),
        ("sort=place", "abc"),
        ("sort=nothing", "abc"),
        ("page=7", "abc"),
        ("page=x", "abc"),
    ],
)
def test_rows_in_memory(researcher: User, query: str, expected: str) -> None:
    """Rows without a value come last in both orders; an unknown choice finds nothing."""
    assert "".join(names(WorkerTable(asked(researcher, query), ROWS))) == expected


def test_what_is_wrong_is_told(researcher: User) -> None:
    table = WorkerTable(asked(researcher, "busy=perhaps&sort=height"), ROWS)
    assert table.errors == [
        "This list cannot be sorted by 'height'.",
        "Busy is 'perhaps'; choose one of the list.",
    ]
    assert not table.is_empty


def test_headers_turn_the_order_around(researcher: User) -> None:
    table = WorkerTable(asked(researcher, "sort=name&q=a&page=2"), ROWS)
    name, load = table.headers
    assert (name.aria, name.url, load.aria, load.url) == (
        "ascending",
        "?sort=-name&q=a",
        "",
        "?sort=-load&q=a",
    )
    assert table.filter_query == "q=a"


def test_actions_are_those_of_the_role(researcher: User) -> None:
    shown = {
        role: [action.name for action in WorkerTable(asked(researcher, role=role), ROWS).visible_actions]
        for role in ("owner", "researcher")
    }
    assert shown == {"owner": ["stop", "see"], "researcher": ["see"]}


def test_columns_and_rows_per_page_are_remembered(
    researcher: User, researcher_client: Client, project: Project
) -> None:
    url = f"/tables/{WorkerTable.name}/display"
    back = "/p/desk/trajectories/?agent=x"
    sent = {"offered": ["load", "place"], "column": ["place"], "next": back}
    assert researcher_client.post(url, sent)["Location"] == back
    researcher_client.post(url, {"page_size": "25", "next": "//evil.example/"})
    table = WorkerTable(asked(researcher), ROWS)
    assert [column.name for column in table.shown_columns] == ["name", "place"]
    assert table.page_size == 25
    other = User.objects.create(email="other@example.org")
    assert [column.name for column in WorkerTable(asked(other), ROWS).shown_columns] == ["name", "load"]
    researcher_client.post(url, {"reset": "1"})
    assert [column.name for column in WorkerTable(asked(researcher), ROWS).shown_columns] == ["name", "load"]
    assert TableDisplay.objects.get().page_size == 25
    assert researcher_client.post(url, {"page_size": "26"}).status_code == 400
    assert researcher_client.post("/tables/unknown/display", {}).status_code == 404
    assert researcher_client.post(url, {"reset": "1", "next": "//evil.example/"})["Location"] == "/"


def test_a_file_has_what_is_shown_and_no_formulas(
    researcher: User, researcher_client: Client, project: Project
) -> None:
    TableDisplay.objects.create(user=researcher, table=WorkerTable.name, columns={"place": True})
    table = WorkerTable(asked(researcher, "csv=1&sort=-name"), ROWS)
    answer = table.response("unused.html")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert list(csv.reader(io.StringIO(text))) == [
        ["Name", "Load", "Place"],
        ["c", "10.0", "'=1+1"],
        ["b", "2.0", ""],
        ["a", "", "here"],
    ]
    assert answer["Content-Disposition"] == 'attachment; filename="workers-of-a-test.csv"'


@pytest.fixture
def many(project: Project) -> Project:
    """120 trajectories, every third without a reward."""
    task = Task.objects.create(project=project, external_id="t")
    Trajectory.objects.bulk_create(
        Trajectory(
            project=project,
            task=task,
            agent_name=f"agent-{number % 4}",
            source_format="openai",
            content_hash=str(number),
            step_count=number,
            agent_step_count=1,
            token_count=1000 - number,
            outcome_reward=number % 10 / 10 if number % 3 else None,
            created_at=datetime(2026, 1, 1, 0, number // 60, number % 60, tzinfo=UTC),
        )
        for number in range(120)
    )
    return project


@pytest.mark.parametrize("few", [1_000, 10])
def test_stored_rows_are_sorted_and_paged(
    many: Project, researcher_client: Client, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether few are found and then put in order, or many are read in order."""
    monkeypatch.setattr(row_pages, "_FEW", few)

    def steps(query: str) -> list[int]:
        return [
            line.row.step_count for line in researcher_client.get(f"{LIST}?{query}").context["table"].body
        ]

    assert steps("") == list(range(119, 69, -1))
    assert steps("page=3") == list(range(19, -1, -1))
    assert steps("sort=tokens")[:3] == [119, 118, 117]
    assert steps("sort=-reward")[:4] == [119, 109, 89, 79], "the highest first, the newest of equals"
    last = researcher_client.get(f"{LIST}?sort=-reward&page=3").context["table"]
    assert [line.row.outcome_reward for line in last.body] == [None] * 20, "those without a reward last"
    assert (last.first, last.last, last.next_url) == (101, 120, "")
    first = researcher_client.get(f"{LIST}?sort=reward&agent=agent-1").context["table"]
    assert (first.body[0].row.outcome_reward, first.count) == (0.1, 30)


def test_counting_is_bounded(
    many: Project, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_pages, "_FEW", 10)
    monkeypatch.setattr(row_pages, "MAX_TABLE_ROWS", 60)
    page = researcher_client.get(f"{LIST}?page=9")
    assert (page.context["table"].page_number, page.context["table"].count) == (2, 60)
    assert b"<strong>More than 60</strong>" in page.content
    refused = researcher_client.get(f"{LIST}?sort=-reward").context["table"]
    assert refused.sort == "-imported" and "cannot be sorted by reward" in refused.errors[0]
    assert researcher_client.get(f"{LIST}?sort=number").context["table"].body[0].row.number == 1
    lines = b"".join(researcher_client.get(f"{LIST}?csv=1").streaming_content).splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 61


def test_queries_do_not_grow_with_the_rows(
    many: Project, researcher: User, researcher_client: Client
) -> None:
    researcher_client.get(LIST)  # the first renews the session
    counts = []
    for size in (25, 100):
        TableDisplay.objects.update_or_create(
            user=researcher, table="trajectories", defaults={"page_size": size}
        )
        with CaptureQueriesContext(connection) as queries:
            assert len(researcher_client.get(LIST).context["table"].body) == size
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_page_works_without_a_script(many: Project, researcher_client: Client) -> None:
    page = researcher_client.get(f"{LIST}?agent=agent-1").content.decode()
    assert 'aria-sort="descending"' in page and "1–30 of 30" in page
    assert 'name="selected"' in page and 'name="query" value="agent=agent-1"' in page
    file = b"".join(researcher_client.get(f"{LIST}?agent=agent-1&csv=1").streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.reader(io.StringIO(file)))
    assert rows[0] == ["Task", "Agent", "Outcome", "Reward", "Steps", "Tokens", "Imported"]
    assert len(rows) == 31 and rows[1][6].startswith("2026-01-01T00:01:")
