"""COPY of trajectories into their tables: a chunk at a time, each trajectory once per project.

Writers of one project take turns by an advisory lock held to the end of the transaction, so that two imports of the
same file neither collide nor deadlock. Cost per row does not depend on the rows already there: keys come from the
sequences in bulk, and what is already there is found by one indexed query per chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import zstandard
from django.db import connection
from django.utils import timezone

from apps.accounts.models import Project
from apps.trajectories import attachments, patterns, search_text, serialization
from apps.trajectories.fields import encode_json
from apps.trajectories.models import Document, Step, Task, Trajectory
from workers import schema

_LOCK = 0x7472616A  # advisory lock class: writers of a project's trajectories
_TRAJECTORY = (
    "id, project_id, task_id, source_format, content_hash, created_at, external_id, agent_name, agent_version,"
    " step_count, agent_step_count, token_count, outcome_reward, success, metadata, patterns"
)
_STEP = (
    "trajectory_id, index, agent_step, source, message, reasoning, tool_calls, observation, features, reward,"
    " metrics, extra"
)
# The hashes go as one array, so that the statement is the same however many there are.
_THERE = (
    "SELECT content_hash, id FROM trajectories_trajectory WHERE project_id = %s AND content_hash = ANY(%s)"
)
_WORDS = (
    "INSERT INTO trajectories_searchtext (trajectory_id, words)"
    " SELECT key, to_tsvector(%s::regconfig, words) FROM unnest(%s::bigint[], %s::text[]) AS new (key, words)"
    " ON CONFLICT (trajectory_id) DO UPDATE SET words = EXCLUDED.words"
)
_DOCUMENT = "trajectory_id, data"
_TASK = "id, project_id, external_id, instruction, reference, metadata"


@dataclass(frozen=True, slots=True)
class PreparedTrajectory:
    """A trajectory ready to be written. fields: of its row after the task's key, up to patterns.
    words: for full-text search. claims: sources in the form of attachment names.

    Nothing of it is a container of containers, so that a chunk costs the garbage collector little.
    """

    task: schema.Task
    fields: tuple[Any, ...]
    content_hash: str
    words: str
    document: bytes
    steps: list[tuple[Any, ...]]
    blobs: list[attachments.Blob]
    claims: frozenset[str]


def prepare_trajectory(
    trajectory: schema.Trajectory, document: bytes, compressor: zstandard.ZstdCompressor
) -> PreparedTrajectory:
    """Everything that does not need the database. Raises InvalidRecord."""
    trajectory = serialization.with_task_id(trajectory)
    claims = attachments.claimed_sources(trajectory)
    trajectory, blobs = attachments.detach_attachments(trajectory)
    serialization.check_lengths(trajectory)
    if trajectory.task.metadata:
        encode_json(trajectory.task.metadata)  # for its errors, which come too late when the task is written
    return PreparedTrajectory(
        task=trajectory.task,
        fields=(
            trajectory.id or "",
            trajectory.agent,
            trajectory.agent_version,
            len(trajectory.steps),
            len(trajectory.agent_steps),
            serialization.token_count(trajectory.steps),
            trajectory.reward,
            trajectory.success,
            encode_json(trajectory.metadata),
            patterns.detect_patterns(trajectory.steps),
        ),
        content_hash=trajectory.content_hash,
        words=search_text.searchable_words(trajectory),
        document=compressor.compress(document),
        steps=_step_rows(trajectory.steps),
        blobs=blobs,
        claims=claims,
    )


def copy_trajectories(
    project: Project, source_format: str, chunk: Sequence[PreparedTrajectory]
) -> tuple[list[int], int]:
    """Write new trajectories in the caller's transaction. Returns the keys in order, and how many are new."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK, project.pk % 2**31])
        cursor.execute(_THERE, [project.pk, [trajectory.content_hash for trajectory in chunk]])
        keys: dict[str, int] = dict(cursor.fetchall())
    new = {trajectory.content_hash: trajectory for trajectory in chunk if trajectory.content_hash not in keys}
    if new:
        keys |= _copy(project, source_format, list(new.values()))
    return [keys[trajectory.content_hash] for trajectory in chunk], len(new)


def write_search_words(words: Sequence[tuple[int, str]]) -> None:
    """Store the search words of trajectories by key; existing words are replaced."""
    with connection.cursor() as cursor:
        cursor.execute(
            _WORDS, [search_text.SEARCH_CONFIG, [key for key, _ in words], [text for _, text in words]]
        )


def _copy(project: Project, source_format: str, chunk: list[PreparedTrajectory]) -> dict[str, int]:
    tasks = _tasks(project, [trajectory.task for trajectory in chunk])
    attachments.store_attachments(project, [blob for trajectory in chunk for blob in trajectory.blobs])
    keyed = list(zip(_next_keys(Trajectory, len(chunk)), chunk, strict=True))
    now = timezone.now()
    _copy_rows(
        Trajectory,
        _TRAJECTORY,
        (
            (
                key,
                project.pk,
                tasks[prepared.task.id],
                source_format,
                prepared.content_hash,
                now,
                *prepared.fields,
            )
            for key, prepared in keyed
        ),
    )
    write_search_words([(key, prepared.words) for key, prepared in keyed])
    _copy_rows(Document, _DOCUMENT, ((key, prepared.document) for key, prepared in keyed))
    _copy_rows(Step, _STEP, ((key, *row) for key, prepared in keyed for row in prepared.steps))
    return {prepared.content_hash: key for key, prepared in keyed}


def _step_rows(steps: Sequence[schema.Step]) -> list[tuple[Any, ...]]:
    out: list[tuple[Any, ...]] = []
    agent_step = 0
    for index, step in enumerate(steps):
        is_agent = step.source == "agent"
        out.append((index, agent_step if is_agent else None, step.source, *serialization.step_columns(step)))
        agent_step += is_agent
    return out


def _tasks(project: Project, tasks: Sequence[schema.Task]) -> dict[str, int]:
    """Keys by external id: made where new, their blanks filled where not. The first to say a thing is believed."""
    wanted = {task.id: task for task in reversed(tasks)}
    found = {
        row.external_id: row
        for row in Task.objects.filter(project=project, external_id__in=wanted).defer("metadata")
    }
    for row in found.values():
        _fill_blanks(row, wanted[row.external_id])
    keys = {row.external_id: row.pk for row in found.values()}
    new = [task for task in wanted.values() if task.id not in found]
    made = list(zip(_next_keys(Task, len(new)), new, strict=True)) if new else []
    _copy_rows(
        Task,
        _TASK,
        (
            (key, project.pk, task.id, task.instruction, task.reference, encode_json(task.metadata))
            for key, task in made
        ),
    )
    return keys | {task.id: key for key, task in made}


def _fill_blanks(row: Task, task: schema.Task) -> None:
    changed = []
    if not row.instruction and task.instruction:
        row.instruction = task.instruction
        changed.append("instruction")
    if row.reference is None and task.reference is not None:
        row.reference = task.reference
        changed.append("reference")
    if changed:
        row.save(update_fields=changed)


def _next_keys(model: type[Task | Trajectory], count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [model._meta.db_table, count],
        )
        return [key for (key,) in cursor.fetchall()]


def _copy_rows(model: type[Any], columns: str, values: Any) -> None:
    statement = f"COPY {model._meta.db_table} ({columns}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in values:
            copy.write_row(row)
