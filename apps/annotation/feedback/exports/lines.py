"""Judgements one by one: import records plus revision, timing and side order, or rows of a table."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.records import Submitted, check_filters, submitted
from apps.annotation.feedback_types import KINDS
from apps.annotation.models import Annotation
from workers import schema
from workers.schema.records import KIND_OF, JudgedRecord, record_trajectories

COLUMNS = (
    *("kind", "task", "item", "a", "b", "choice", "strength", "criterion"),
    *("trajectory", "text", "first_step", "last_step", "quote", "sign"),
    *("items", "ranks", "labels", "first_error", "corrections"),
    *("definition", "value", "scale", "note", "accept", "rating", "annotator", "origin"),
    *(
        "campaign",
        "campaign_version",
        "revision",
        "swapped",
        "active_seconds",
        "created",
        "adjudication",
        "purpose",
    ),
)


def export_jsonl(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """One import record a line, which `import_feedback` reads back; how it was made is under "made"."""
    for one, record in said_records(project, filters):
        line = line_of(record) | {
            "campaign": one.annotation.assignment.item.campaign.name,
            "made": made(one.annotation),
        }
        kept = {key: value for key, value in line.items() if value is not None or key == "first_error"}
        yield json.dumps(kept, ensure_ascii=False) + "\n"


def export_csv(*, project: Project, filters: dict[str, Any]) -> Iterator[str]:
    """A table for a spreadsheet: trajectories by id, a judgement a row."""
    yield _row(COLUMNS)
    for one, record in said_records(project, filters):
        values = line_of(record, lambda trajectory: trajectory.id) | made(one.annotation)
        values["campaign"] = one.annotation.assignment.item.campaign.name
        values["kind"], values["task"] = KIND_OF[type(record)], values["task"]["id"]
        if "first_error" in values and values["first_error"] is None:
            values["first_error"] = "none"
        anchor = values.pop("anchor", None) or {}
        values["first_step"], values["last_step"] = anchor.get("steps", (None, None))
        values["quote"] = anchor.get("quote")
        yield _row(tuple(spreadsheet_cell(values.get(column)) for column in COLUMNS))


def said_records(project: Project, filters: dict[str, Any]) -> Iterator[tuple[Submitted, JudgedRecord]]:
    check_filters(filters)
    for one in submitted(project=project, filters=filters):
        for record in one.records:
            yield one, record


def _item(trajectory: schema.Trajectory) -> dict[str, Any]:
    return {"trajectory": schema.to_atif(trajectory)}


def line_of(record: JudgedRecord, item: Callable[[schema.Trajectory], Any] = _item) -> dict[str, Any]:
    """The import record: what was judged and said, by whom. The campaign's name is a field of its own."""
    trajectories = record_trajectories(record)
    said = KINDS[KIND_OF[type(record)]].to_json(record, item)
    common = {"annotator": record.annotator, "origin": record.origin, "item": _name(record.item)}
    return {"task": _task(trajectories[0])} | said | common


def _name(item: str | None) -> str | None:
    """The name an item was given; one made from contents needs none, equal contents make it again."""
    _, _, name = (item or "").partition(":name:")
    return name or None


def _task(trajectory: schema.Trajectory) -> dict[str, Any]:
    task = {"id": trajectory.task.id, "instruction": trajectory.task.instruction}
    return {key: value for key, value in task.items() if value}


def made(annotation: Annotation) -> dict[str, Any]:
    explanation = annotation.assignment.item.explanation
    return ({"explanation": explanation} if explanation else {}) | {
        "campaign_version": annotation.campaign_version,
        "revision": annotation.revision,
        "swapped": annotation.assignment.swapped,
        "active_seconds": annotation.active_seconds,
        "created": annotation.created_at.isoformat(),
        "adjudication": annotation.assignment.is_adjudication,
        "purpose": annotation.assignment.item.purpose,
    }


def _row(values: tuple[Any, ...]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()


def spreadsheet_cell(value: Any) -> Any:
    """What has parts as JSON; before what a spreadsheet would take for a formula an apostrophe, which makes it text."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value
