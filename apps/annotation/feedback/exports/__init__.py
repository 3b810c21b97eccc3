"""Export formats of feedback; all of them stream."""

from collections.abc import Callable, Iterator
from typing import Any

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.annotation.feedback.exports.atif import export_atif
from apps.annotation.feedback.exports.jsonl_csv import COLUMNS, export_csv, export_jsonl
from apps.annotation.feedback.exports.otel import export_otel
from apps.annotation.feedback.spreadsheets import spreadsheet_cell

__all__ = [
    "COLUMNS",
    "DESCRIPTIONS",
    "ENDINGS",
    "EXPORTS",
    "export_atif",
    "export_csv",
    "export_jsonl",
    "export_otel",
    "record_export",
    "register",
    "spreadsheet_cell",
]
Exporter = Callable[..., Iterator[str]]  # of project and filters
EXPORTS: dict[str, Exporter] = {
    "jsonl": export_jsonl,
    "csv": export_csv,
    "atif": export_atif,
    "otel": export_otel,
}
ENDINGS = {"csv": "csv"}  # of files that are not compressed; the others are compressed JSON lines
DESCRIPTIONS = {
    "jsonl": "every judgement with the runs in full, as import_feedback reads it back",
    "csv": "a row a judgement, runs by their number, for a spreadsheet",
    "atif": "every run that was judged, as ATIF, with all that was said of it",
    "otel": "every judgement as OpenTelemetry evaluation events, for a collector",
}


def register(name: str, exporter: Exporter, description: str, *, ending: str) -> None:
    """Register a format of an upper app, from its AppConfig.ready."""
    EXPORTS[name], DESCRIPTIONS[name], ENDINGS[name] = exporter, description, ending


def record_export(
    *, project: Project, format: str, filters: dict[str, Any], by: User | ApiKey | None
) -> None:
    """Record an export in the audit trail, which is permanent and so names no annotators."""
    data = {"format": format} | {name: value for name, value in filters.items() if name != "annotators"}
    record_audit(project=project, actor=by, verb="feedback.exported", target=format, data=data)
