"""`openrlhf`: preferences as OpenRLHF's reward trainer reads them with `--apply_chat_template`: whole conversations.

    {"chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

`--chosen_key chosen --rejected_key rejected` are its defaults; no prompt key is needed.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.datasets.exports.conversations import (
    decided_pairs,
    lines,
    messages_of,
    pair_has_tools,
    sides,
    told,
)
from apps.datasets.models import DatasetVersion
from workers.schema import PreferenceRecord


def export(dataset_version: DatasetVersion, split: str | None) -> Iterator[str]:
    return lines(partial(decided_pairs, dataset_version, split), pair_has_tools, _row)


def _row(record: PreferenceRecord, tools: bool) -> dict[str, Any]:
    chosen, rejected = (messages_of(one, tools=tools) for one in sides(record))
    return {"chosen": chosen, "rejected": rejected} | told(record)
