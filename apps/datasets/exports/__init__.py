"""Exports of dataset versions: one module per format, each a stream of lines.

An export takes the dataset version and a split (None: all of them) and yields lines that end with a newline. Every
line has the `origin` of its feedback, so that labels of judges can be distinguished from labels of people. What a
format has no line for is counted by reason in the third argument, which is complete once the last line is read.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain

from django.http import StreamingHttpResponse

from apps.accounts.models import ApiKey, User
from apps.accounts.services import record_audit
from apps.core.errors import DomainError
from apps.core.storage.storage_names import download_header
from apps.datasets.exports import lines, openrlhf, rewardbench, trl, trl_stepwise, trl_unpaired
from apps.datasets.exports.conversations import LeftOut
from apps.datasets.models import DatasetVersion
from apps.datasets.splits import SPLITS

Exporter = Callable[[DatasetVersion, str | None, LeftOut], Iterator[str]]

EXPORTS: dict[str, Exporter] = {
    "jsonl": lines.export,
    "trl": trl.export,
    "trl-unpaired": trl_unpaired.export,
    "trl-stepwise": trl_stepwise.export,
    "openrlhf": openrlhf.export,
    "rewardbench": rewardbench.export,
}
READ_TWICE = frozenset(("trl", "trl-unpaired", "openrlhf"))
DESCRIPTIONS = {
    "trl": "preferences for TRL: explicit prompt, conversational, with margins",
    "trl-unpaired": "single trajectories labelled good or bad, for TRL's KTO trainer: ratings and unpaired preferences",
    "trl-stepwise": "steps labelled right or wrong, for TRL's stepwise supervision: step labels",
    "openrlhf": "preferences for OpenRLHF's reward trainer: full conversations",
    "rewardbench": "preferences as text, in RewardBench's test set format",
    "jsonl": "every record, as frozen",
}


def require_format(format: str, split: str | None) -> None:
    """Raises DomainError for a format or a split that there is not."""
    if format not in EXPORTS:
        raise DomainError(f"Unknown format {format!r}; choose from {', '.join(EXPORTS)}.", pointer="/format")
    if split is not None and split not in SPLITS:
        raise DomainError(f"Unknown split {split!r}; choose from {', '.join(SPLITS)}.", pointer="/split")


def left_out_counts(left_out: LeftOut) -> dict[str, int]:
    """What a finished export has no line for: number by reason."""
    return {reason: number for reason, number in sorted(left_out.items()) if number}


def record_export(
    dataset_version: DatasetVersion, *, format: str, split: str | None, by: User | ApiKey | None
) -> None:
    """Who takes a dataset version along."""
    data = {"format": format} | ({"split": split} if split else {})
    record_audit(
        project=dataset_version.project,
        actor=by,
        verb="dataset.exported",
        target=str(dataset_version),
        data=data,
    )


def export_response(
    dataset_version: DatasetVersion, *, format: str, split: str | None, by: User | ApiKey
) -> StreamingHttpResponse:
    """An export as a download, written while it is sent.

    The header X-Touchstone-Left-Out says what the format has no line for, as JSON, where that is known before the first
    line: of the formats that are read twice.
    """
    require_format(format, split)
    record_export(dataset_version, format=format, split=split, by=by)
    parts = (
        dataset_version.project.slug,
        dataset_version.name,
        str(dataset_version.version),
        split or "all",
        format,
    )
    left_out: LeftOut = Counter()
    rows = EXPORTS[format](dataset_version, split, left_out)
    first = next(rows, "")
    response = StreamingHttpResponse(chain([first], rows), content_type="application/x-ndjson")
    if (counts := left_out_counts(left_out)) and format in READ_TWICE:
        response["X-Touchstone-Left-Out"] = json.dumps(counts)
    response["Content-Disposition"] = download_header("-".join(parts) + ".jsonl")
    return response
