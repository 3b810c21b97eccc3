"""Export formats of feedback; all of them stream."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.annotation.feedback.exports.atif import export_atif
from apps.annotation.feedback.exports.jsonl_csv import COLUMNS, export_csv, export_jsonl
from apps.annotation.feedback.exports.otel import export_otel
from apps.annotation.feedback.exports.trace_stores import export_langfuse, export_phoenix
from apps.core.registries import NamedRegistry
from apps.core.spreadsheets import spreadsheet_cell

__all__ = [
    "COLUMNS",
    "DESCRIPTIONS",
    "ENDINGS",
    "EXPORTS",
    "GROUPS",
    "export_atif",
    "export_csv",
    "export_jsonl",
    "export_lines",
    "export_otel",
    "record_export",
    "register",
    "spreadsheet_cell",
]
Exporter = Callable[..., Iterator[str]]  # of project and filters
EXPORTS: NamedRegistry[str, Exporter] = NamedRegistry(
    {
        "jsonl": export_jsonl,
        "csv": export_csv,
        "atif": export_atif,
        "otel": export_otel,
        "langfuse-scores": export_langfuse,
        "phoenix-annotations": export_phoenix,
    }
)
# Formats that have no line for some of the feedback, and count it by reason.
_COUNTING: dict[str, Exporter] = {"langfuse-scores": export_langfuse, "phoenix-annotations": export_phoenix}
ENDINGS: NamedRegistry[str, str] = NamedRegistry(
    {"csv": "csv"}
)  # of files that are not compressed; the others are compressed JSON lines
DESCRIPTIONS: NamedRegistry[str, str] = NamedRegistry(
    {
        "jsonl": "every annotation with its trajectories in full, as import_feedback reads it back",
        "csv": "a row for each annotation, trajectories by their number, for a spreadsheet",
        "atif": "every annotated trajectory, as ATIF, with its annotations",
        "otel": "every annotation as OpenTelemetry evaluation events, for a collector",
        "langfuse-scores": "scores on the traces that trajectories came from, as Langfuse's API takes them",
        "phoenix-annotations": "annotations of the spans and traces that trajectories came from, as Phoenix's API "
        "takes them",
    }
)
FILES, TRACES, AGENTS = "Files and spreadsheets", "Traces and trace stores", "Agents"
GROUPS: NamedRegistry[str, str] = NamedRegistry(
    {
        "jsonl": FILES,
        "csv": FILES,
        "atif": TRACES,
        "otel": TRACES,
        "langfuse-scores": TRACES,
        "phoenix-annotations": TRACES,
    }
)


def register(name: str, exporter: Exporter, description: str, *, ending: str, group: str = AGENTS) -> None:
    """Register a format of an upper app, from its AppConfig.register."""
    EXPORTS[name], DESCRIPTIONS[name], ENDINGS[name], GROUPS[name] = exporter, description, ending, group


def export_lines(
    format: str, *, project: Project, filters: dict[str, Any], left_out: Counter[str]
) -> Iterator[str]:
    """The lines of an export. What the format has no line for is counted in `left_out`, by reason."""
    if format in _COUNTING:
        return _COUNTING[format](project=project, filters=filters, left_out=left_out)
    return EXPORTS[format](project=project, filters=filters)


def record_export(
    *, project: Project, format: str, filters: dict[str, Any], by: User | ApiKey | None
) -> None:
    """Record an export in the audit trail, which is permanent and so names no annotators."""
    data = {"format": format} | {name: value for name, value in filters.items() if name != "annotators"}
    record_audit(project=project, actor=by, verb="feedback.exported", target=format, data=data)
