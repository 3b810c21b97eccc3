"""Preferences as a common prompt and two sides of text, for trainers that read no images."""

from collections.abc import Iterator

from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.conversations import (
    Message,
    asked,
    chosen_and_rejected,
    conversation_messages,
    count_named_media,
    decided_pairs,
    split_prompt,
    without_images,
)
from apps.datasets.models import DatasetVersion
from workers.schema import PreferenceRecord

ALIKE = "pairs whose sides are written alike"
SEVERAL = "pairs whose sides are not one message of text each"
TextPair = tuple[PreferenceRecord, list[Message], list[Message], list[Message]]


def text_pairs(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[TextPair]:
    """Record, prompt, chosen and rejected continuation. Images are named in the text, and counted."""
    for record in decided_pairs(dataset_version, split, left_out):
        chosen, rejected = chosen_and_rejected(record)
        parts = split_prompt(conversation_messages(chosen), conversation_messages(rejected))
        prompt, first, second = (without_images(messages, left_out) for messages in parts)
        if first == second:
            left_out[ALIKE] += 1
            continue
        count_named_media(left_out, record.a, record.b)
        yield record, asked(prompt, record.a), first, second
