"""What people said, going out: the import records plus revision, timing and side order. Streams."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.records import Submitted, check_filters, submitted
from apps.annotation.models import Submission
from workers import schema
from workers.schema.records import KIND_OF

COLUMNS = (
    *("kind", "task", "item", "a", "b", "choice", "strength", "criterion"),
    *("trajectory", "text", "first_step", "last_step", "quote", "sign", "annotator", "origin"),
    *("campaign", "campaign_version", "revision", "swapped", "active_seconds", "created"),
)


def export_jsonl(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """One import record a line, which `import_feedback` reads back; how it was made is under "made"."""
    for one, record in _records(project, filters):
        line = _line(record) | {
            "campaign": one.submission.assignment.item.campaign.name,
            "made": _made(one.submission),
        }
        yield (
            json.dumps({key: value for key, value in line.items() if value is not None}, ensure_ascii=False)
            + "\n"
        )


def export_csv(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """A table for a spreadsheet: trajectories by id, a judgement a row."""
    yield _row(COLUMNS)
    for one, record in _records(project, filters):
        values = _line(record) | _made(one.submission)
        values["campaign"] = one.submission.assignment.item.campaign.name
        values["kind"], values["task"] = KIND_OF[type(record)], values["task"]["id"]
        for place in ("a", "b", "trajectory"):
            values[place] = getattr(getattr(record, place, None), "id", None)
        anchor = values.pop("anchor", None) or {}
        values["first_step"], values["last_step"] = anchor.get("steps", (None, None))
        values["quote"] = anchor.get("quote")
        yield _row(tuple(_safe(values.get(column)) for column in COLUMNS))


EXPORTS = {"jsonl": export_jsonl, "csv": export_csv}


def _records(
    project: Project, filters: dict[str, Any]
) -> Iterator[tuple[Submitted, schema.PreferenceRecord | schema.CommentRecord]]:
    check_filters(filters)
    for one in submitted(project=project, filters=filters):
        for record in one.records:
            kind = KIND_OF[type(record)]
            if isinstance(record, schema.PreferenceRecord | schema.CommentRecord) and kind in (
                filters.get("kinds") or (kind,)
            ):
                yield one, record


def _line(record: schema.PreferenceRecord | schema.CommentRecord) -> dict[str, Any]:
    said = {"annotator": record.annotator, "origin": record.origin}
    if isinstance(record, schema.PreferenceRecord):
        judged = {"task": _task(record.a), "a": _item(record.a), "b": _item(record.b)}
        value = {"choice": record.choice, "strength": record.strength, "criterion": record.criterion}
        # The campaign's name is a field of its own; the item is named within it.
        return judged | value | said | {"item": _name(record.item)}
    anchor = None
    if record.anchor:
        fields = {
            "steps": list(record.anchor.steps),
            "quote": record.anchor.quote,
            "chars": record.anchor.chars,
        }
        anchor = {key: value for key, value in fields.items() if value is not None}
    judged = {"task": _task(record.trajectory), "trajectory": _item(record.trajectory)}
    return (
        judged
        | {"text": record.text, "anchor": anchor, "sign": record.sign}
        | said
        | {"item": _name(record.item)}
    )


def _name(item: str | None) -> str | None:
    """The name an item was given; one made from contents needs none, equal contents make it again."""
    _, _, name = (item or "").partition(":name:")
    return name or None


def _task(trajectory: schema.Trajectory) -> dict[str, Any]:
    task = {"id": trajectory.task.id, "instruction": trajectory.task.instruction}
    return {key: value for key, value in task.items() if value}


def _item(trajectory: schema.Trajectory) -> dict[str, Any]:
    return {"trajectory": schema.to_atif(trajectory)}


def _made(submission: Submission) -> dict[str, Any]:
    return {
        "campaign_version": submission.campaign_version,
        "revision": submission.revision,
        "swapped": submission.assignment.swapped,
        "active_seconds": submission.active_seconds,
        "created": submission.created_at.isoformat(),
    }


def _row(values: tuple[Any, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()


def _safe(value: Any) -> Any:
    """A spreadsheet takes text that begins like a formula for one; an apostrophe makes it text again."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )
