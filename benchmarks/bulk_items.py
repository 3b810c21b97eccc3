"""Stored trajectories by the million: short chats with a tool, copied straight into their tables.

Each follows from its number, and no two are equal. What an import makes next to them (documents, words to search) is
left out, since no bulk job reads it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.size_records import text

AT_ONCE = 20_000
_PER_TASK = 4
_TURNS = (1, 1, 2, 3)  # agent steps before the last
_TASK = "id, project_id, external_id, instruction, metadata"
_TRAJECTORY = (
    "id, number, project_id, task_id, external_id, agent_name, agent_version, source_format, content_hash, identity,"
    " step_count, agent_step_count, token_count, metadata, created_at"
)
_STEP = (
    "trajectory_id, index, agent_step, source, message, reasoning, tool_calls, observation, metrics, extra"
)
_Row = tuple[Any, ...]


def copy_items(
    project: Any, count: int, *, length: float = 1.0, say: Callable[[str], None] = lambda line: None
) -> None:
    """Store `count` trajectories in a database that has none. length: of their texts, 1 for about 1 KB of JSON."""
    from django.db import connection, transaction

    from apps.accounts.project_numbers import take_numbers

    now = "2026-11-01 10:00:00+00"
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, count))
        tasks = (
            (n // _PER_TASK + 1, project.pk, f"t{n // _PER_TASK}", "", "{}") for n in numbers[::_PER_TASK]
        )
        with transaction.atomic(), connection.cursor() as cursor:
            take_numbers(project.pk, "trajectories_trajectory", len(numbers))
            for table, columns, rows in (
                ("task", _TASK, tasks),
                ("trajectory", _TRAJECTORY, (_trajectory_row(n, project.pk, now) for n in numbers)),
                ("step", _STEP, (row for n in numbers for row in _step_rows(n, length))),
            ):
                with cursor.copy(f"COPY trajectories_{table} ({columns}) FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
        say(f"{numbers[-1] + 1:,} trajectories stored")
    with connection.cursor() as cursor:
        for table in ("task", "trajectory"):
            cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('trajectories_{table}', 'id'), (SELECT max(id) FROM"
                f" trajectories_{table}))"
            )
        cursor.execute("ANALYZE trajectories_task, trajectories_trajectory, trajectories_step")


def _turns(number: int) -> int:
    return _TURNS[number % len(_TURNS)]


def _trajectory_row(number: int, project: int, now: str) -> _Row:
    turns = _turns(number)
    steps = turns + 2
    digest = f"{number:064x}"
    return (
        number + 1,
        number + 1,
        project,
        number // _PER_TASK + 1,
        f"r{number}",
        f"agent-{number % 5}",
        "1",
        "openai",
        digest,
        digest,
        steps,
        turns + 1,
        120 + 90 * turns,
        "{}",
        now,
    )


def _step_rows(number: int, length: float) -> Iterator[_Row]:
    """A question, calls with their results, and an answer."""
    turns, key = _turns(number), number + 1
    yield _step(key, 0, None, "user", text(number, int(160 * length)))
    for turn in range(turns):
        seed = number * 5 + turn
        call = {"name": "read_page", "arguments": {"page": seed}, "id": f"c{turn}"}
        result = {"content": [{"text": text(seed + 1, int(200 * length))}], "call_id": f"c{turn}"}
        yield _step(key, turn + 1, turn, "agent", "", [call], [result])
    yield _step(key, turns + 1, turns, "agent", text(number * 3 + 2, int(240 * length)))


def _step(
    key: int, index: int, agent_step: int | None, source: str, said: str, calls: Any = (), results: Any = ()
) -> _Row:
    message = json.dumps([{"text": said}]) if said else "[]"
    return key, index, agent_step, source, message, None, json.dumps(calls), json.dumps(results), "{}", "{}"
