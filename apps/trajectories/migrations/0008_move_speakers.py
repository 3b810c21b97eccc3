from collections import Counter
from hashlib import sha256
from itertools import groupby
from typing import Any

from django.db import connection, migrations, models

from apps.trajectories.fields import encode_json
from workers import schema
from workers.schema.decode import convert

_BATCH = 20  # trajectories, whose steps are all in memory
_LONGEST = 200  # characters of a name
# Formats that kept the name of a speaker as extra.speaker; in others a field of that name may be anything.
_NAMING = ("who-and-when", "tape", "atif", "api", "feedback")
_CANDIDATES = """
SELECT DISTINCT trajectory_id FROM trajectories_step
WHERE extra::text LIKE '%"speaker"%' OR extra::text LIKE '%"message"%"name"%' ORDER BY 1
"""
_UPDATE_STEPS = """
UPDATE trajectories_step AS step SET speaker = new.speaker, extra = new.extra::json
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS new (id, speaker, extra) WHERE step.id = new.id
"""
_UPDATE_TRAJECTORIES = """
UPDATE trajectories_trajectory AS trajectory
SET earlier_content_hash = trajectory.content_hash, content_hash = new.content_hash, identity = new.identity
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS new (id, content_hash, identity) WHERE trajectory.id = new.id
"""


def move_speakers(apps: Any, schema_editor: Any) -> None:
    """Names in `extra` to the column, and what follows of it: content hash and identity."""
    with connection.cursor() as cursor:
        cursor.execute(_CANDIDATES)
        keys = [key for (key,) in cursor.fetchall()]
    seen: Counter[str] = Counter()
    for start in range(0, len(keys), _BATCH):
        _move(apps, keys[start : start + _BATCH], seen)


def _move(apps: Any, keys: list[int], seen: Counter[str]) -> None:
    rows = apps.get_model("trajectories", "Trajectory").objects.select_related("task").in_bulk(keys)
    found = apps.get_model("trajectories", "Step").objects.filter(trajectory__in=keys)
    changed_steps, changed = [], []
    for key, group in groupby(found.order_by("trajectory_id", "index"), lambda step: step.trajectory_id):
        row, steps = rows[key], list(group)
        moved = [step for step in steps if _take_speaker(step, row.source_format)]
        if not moved:
            continue
        changed_steps += [(step.pk, step.speaker, encode_json(step.extra)) for step in moved]
        content = _content_hash(row.task.external_id, steps)
        changed.append((key, content, _identity(row, content, seen)))
    with connection.cursor() as cursor:
        for query, values in ((_UPDATE_STEPS, changed_steps), (_UPDATE_TRAJECTORIES, changed)):
            if values:
                cursor.execute(query, [list(column) for column in zip(*values, strict=True)])


def _take_speaker(step: Any, source_format: str) -> bool:
    """As the readers of this version do; whether there was one."""
    extra, message = step.extra, step.extra.get("message")
    if step.speaker is not None:
        return False
    if source_format in _NAMING and _is_name(extra.get("speaker")):
        step.speaker, step.extra = extra["speaker"], {key: extra[key] for key in extra if key != "speaker"}
    elif step.source != "environment" and isinstance(message, dict) and _is_name(message.get("name")):
        rest = {key: message[key] for key in message if key != "name"}
        others = {key: extra[key] for key in extra if key != "message"}
        step.speaker, step.extra = message["name"], others | ({"message": rest} if rest else {})
    return step.speaker is not None


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


def _content_hash(task: str, steps: list[Any]) -> str:
    return schema.Trajectory(
        task=schema.Task(id=task),
        steps=tuple(
            schema.Step(
                source=step.source,
                speaker=step.speaker,
                message=convert(step.message, tuple[schema.Part, ...]),
                reasoning=step.reasoning,
                tool_calls=convert(step.tool_calls, tuple[schema.ToolCall, ...]),
                observation=convert(step.observation, tuple[schema.ObservationResult, ...]),
                features=None if step.features is None else tuple(step.features),
            )
            for step in steps
        ),
    ).content_hash


def _identity(row: Any, content: str, seen: Counter[str]) -> str:
    """As writer.identity_of. Without an id of the source, equal ones count from the oldest."""
    if not row.identity:
        return ""
    names = ["" if name == "unknown" else name for name in (row.agent_name, row.agent_version)]
    source = "\x1f".join([row.task.external_id, row.external_id, *names, content])
    place = f"{row.project_id} {source}"
    ordinal = 0 if row.external_id else seen[place]
    seen[place] += 1
    return sha256(f"{source}\x1f{ordinal}".encode("utf-8", "surrogatepass")).hexdigest()


class Migration(migrations.Migration):
    """Names of speakers that were kept in `extra` become the speakers of their steps, and so content."""

    dependencies = [("trajectories", "0007_step_speaker")]

    operations = [
        migrations.AddField("trajectory", "earlier_content_hash", models.CharField(max_length=64, null=True)),
        migrations.AddIndex(
            "trajectory",
            models.Index(
                condition=models.Q(("earlier_content_hash__isnull", False)),
                fields=["project", "earlier_content_hash"],
                name="trajectory_earlier_content",
            ),
        ),
        migrations.RunPython(move_speakers, migrations.RunPython.noop),
    ]
