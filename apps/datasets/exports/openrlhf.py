"""`openrlhf`: preferences as OpenRLHF's reward trainer reads them with `--apply_chat_template`: whole conversations.

    {"chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

`--chosen_key chosen --rejected_key rejected` are its defaults; no prompt key is needed.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.datasets.exports.conversations import (
    chosen_and_rejected,
    conversation_messages,
    decided_pairs,
    json_lines,
    pair_has_tools,
    preference_fields,
)
from apps.datasets.models import DatasetVersion
from workers.schema import PreferenceRecord


def export(dataset_version: DatasetVersion, split: str | None) -> Iterator[str]:
    return json_lines(partial(decided_pairs, dataset_version, split), pair_has_tools, _row)


def _row(record: PreferenceRecord, tools: bool) -> dict[str, Any]:
    chosen, rejected = (
        conversation_messages(trajectory, tools=tools) for trajectory in chosen_and_rejected(record)
    )
    return {"chosen": chosen, "rejected": rejected} | preference_fields(record)
