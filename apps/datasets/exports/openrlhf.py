"""`openrlhf`: preferences as OpenRLHF's reward trainer reads them with `--apply_chat_template`: whole conversations.

    {"chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

`--chosen_key chosen --rejected_key rejected` are its defaults; no prompt key is needed. `tools` is there where the
trajectories state their definitions. It reads no images: they are named in the text, and counted.
"""

from collections.abc import Iterator
from typing import Any

from apps.datasets.exports.columns import json_lines
from apps.datasets.exports.conversations import (
    LeftOut,
    chosen_and_rejected,
    conversation_messages,
    count_named_media,
    decided_pairs,
    preference_fields,
    without_images,
)
from apps.datasets.models import DatasetVersion


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows() -> Iterator[dict[str, Any]]:
        left_out.clear()
        for record in decided_pairs(dataset_version, split, left_out):
            chosen, rejected = (
                without_images(conversation_messages(trajectory), left_out)
                for trajectory in chosen_and_rejected(record)
            )
            if chosen == rejected:
                left_out["pairs whose sides are written alike"] += 1
            else:
                count_named_media(left_out, record.a, record.b)
                yield {"chosen": chosen, "rejected": rejected} | preference_fields(record)

    return json_lines(rows)
