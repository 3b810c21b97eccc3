"""Snapshots for others: one module per format, each a stream of lines.

An export takes the snapshot and a split (None: all of them) and yields lines that end with a newline.
"""

from collections.abc import Callable, Iterator

from django.http import StreamingHttpResponse

from apps.core.errors import DomainError
from apps.datasets.exports import lines, openrlhf, rewardbench, trl, trl_stepwise, trl_unpaired
from apps.datasets.models import Snapshot
from apps.datasets.splits import SPLITS

Export = Callable[[Snapshot, str | None], Iterator[str]]

EXPORTS: dict[str, Export] = {
    "jsonl": lines.export,
    "trl": trl.export,
    "trl-unpaired": trl_unpaired.export,
    "trl-stepwise": trl_stepwise.export,
    "openrlhf": openrlhf.export,
    "rewardbench": rewardbench.export,
}
DESCRIPTIONS = {
    "trl": "preferences as TRL reads them: explicit prompt, conversational, with margins",
    "trl-unpaired": "single runs, good or not, as TRL's KTO trainer reads them: ratings and unpaired preferences",
    "trl-stepwise": "steps, right or not, as TRL describes stepwise supervision: step labels",
    "openrlhf": "preferences as OpenRLHF's reward trainer reads them: whole conversations",
    "rewardbench": "preferences as texts, as RewardBench reads a test set",
    "jsonl": "every record as it was frozen",
}


def attachment(snapshot: Snapshot, *, format: str, split: str | None) -> StreamingHttpResponse:
    """An export as a download, written while it is sent."""
    if format not in EXPORTS:
        raise DomainError(f"Unknown format {format!r}; known are {', '.join(EXPORTS)}.", pointer="/format")
    if split is not None and split not in SPLITS:
        raise DomainError(f"Unknown split {split!r}; known are {', '.join(SPLITS)}.", pointer="/split")
    name = f"{snapshot.project.slug}-{snapshot.name}-{snapshot.version}-{split or 'all'}-{format}.jsonl"
    response = StreamingHttpResponse(EXPORTS[format](snapshot, split), content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
