"""`rewardbench`: a test set as RewardBench reads one: texts, and which model wrote them.

    {"id": 0, "subset": "first", "prompt": "...", "chosen": "...", "rejected": "...",
     "chosen_model": "fox", "rejected_model": "owl", "origin": "person"}

subset is the dataset's name. What has several messages is written with their roles.
"""

import json
from collections.abc import Iterator

from apps.datasets.exports.conversations import (
    as_text,
    chosen_and_rejected,
    conversation_messages,
    decided_pairs,
    split_prompt,
)
from apps.datasets.models import DatasetVersion


def export(dataset_version: DatasetVersion, split: str | None) -> Iterator[str]:
    for number, record in enumerate(decided_pairs(dataset_version, split)):
        chosen, rejected = chosen_and_rejected(record)
        prompt, first, second = split_prompt(
            conversation_messages(chosen, tools=True), conversation_messages(rejected, tools=True)
        )
        row = {
            "id": number,
            "subset": dataset_version.name,
            "prompt": as_text(prompt) if prompt else record.a.task.instruction,
            "chosen": as_text(first),
            "rejected": as_text(second),
            "chosen_model": chosen.agent,
            "rejected_model": rejected.agent,
            "origin": record.origin,
        }
        yield json.dumps(row, ensure_ascii=False) + "\n"
