"""`rewardbench`: a test set as RewardBench reads one: texts, and which model wrote them.

    {"id": 0, "subset": "first", "prompt": "...", "chosen": "...", "rejected": "...",
     "chosen_model": "fox", "rejected_model": "owl", "origin": "person", "record": "..."}

subset is the dataset's name. What has several messages is written with their roles.
"""

import json
from collections.abc import Iterator

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.conversations import (
    LeftOut,
    as_text,
    chosen_and_rejected,
    conversation_messages,
    count_named_media,
    decided_pairs,
    split_prompt,
    without_images,
)
from apps.datasets.models import DatasetVersion


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    number = 0
    for record in decided_pairs(dataset_version, split, left_out):
        chosen, rejected = chosen_and_rejected(record)
        sides = split_prompt(conversation_messages(chosen), conversation_messages(rejected))
        prompt, first, second = (as_text(without_images(messages, left_out)) for messages in sides)
        if first == second:
            left_out["pairs whose sides are written alike"] += 1
            continue
        count_named_media(left_out, record.a, record.b)
        row = {
            "id": number,
            "subset": dataset_version.name,
            "prompt": prompt or record.a.task.instruction,
            "chosen": first,
            "rejected": second,
            "chosen_model": chosen.agent,
            "rejected_model": rejected.agent,
            "origin": record.origin,
            FIELD: record_text(record),
        }
        number += 1
        yield json.dumps(row, ensure_ascii=False) + "\n"
