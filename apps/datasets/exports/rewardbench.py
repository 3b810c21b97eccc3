"""`rewardbench`: a test set as RewardBench reads one: texts, and which model wrote them.

    {"id": 0, "subset": "first", "prompt": "...", "chosen": "...", "rejected": "...",
     "chosen_model": "fox", "rejected_model": "owl", "origin": "person", "record": "..."}

subset is the dataset's name. What has several messages is written with their roles.
"""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    as_text,
    chosen_and_rejected,
    conversation_messages,
    count_named_media,
    decided_pairs,
    split_prompt,
    without_images,
)
from apps.datasets.exports.pairs import ALIKE
from apps.datasets.models import DatasetVersion


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(_rows(dataset_version, split, left_out)):
            yield {"id": number} | row

    return json_lines(rows, left_out)


def _rows(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    for record in decided_pairs(dataset_version, split, left_out):
        chosen, rejected = chosen_and_rejected(record)
        sides = split_prompt(conversation_messages(chosen), conversation_messages(rejected))
        prompt, first, second = (as_text(without_images(messages, left_out)) for messages in sides)
        if first == second:
            left_out[ALIKE] += 1
            continue
        count_named_media(left_out, record.a, record.b)
        yield {
            "subset": dataset_version.name,
            "prompt": prompt or record.a.task.instruction,
            "chosen": first,
            "rejected": second,
            "chosen_model": chosen.agent,
            "rejected_model": rejected.agent,
            "origin": record.origin,
            FIELD: record_text(record),
        }
