"""`trl`: preferences as TRL's trainers read them: explicit prompt, conversational, with a margin.

    {"prompt": [messages], "chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

and `tools` (definitions) and `images` (of the prompt, as data URLs or addresses) where there are any. Ties, both-bad,
judgements of one criterion and pairs whose sides are written alike have no chosen side and are left out, counted.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    Message,
    asked,
    chosen_and_rejected,
    conversation_messages,
    count_named_media,
    decided_pairs,
    has_images,
    preference_fields,
    prompt_images,
    split_prompt,
    with_images,
    without_images,
)
from apps.datasets.exports.pairs import ALIKE
from apps.datasets.models import DatasetVersion
from workers.schema import PreferenceRecord


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    some_images = any(
        has_images(_sides(with_images(dataset_version, record))[0])
        for record in decided_pairs(dataset_version, split, Counter())
    )

    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for record in decided_pairs(dataset_version, split, left_out):
            yield from _rows(dataset_version, record, some_images, left_out)

    return json_lines(rows, left_out)


def _rows(
    dataset_version: DatasetVersion, record: PreferenceRecord, some_images: bool, left_out: LeftOut
) -> Iterator[dict[str, Any]]:
    """One row, or none. some_images: whether any prompt of the file has one."""
    restored = with_images(dataset_version, record)
    prompt, first, second = _sides(restored)
    chosen, rejected = without_images(first, left_out), without_images(second, left_out)
    if chosen == rejected:
        left_out[ALIKE] += 1
        return
    count_named_media(left_out, restored.a, restored.b)
    messages, images = prompt_images(prompt, left_out, parts=some_images)
    row = {"prompt": messages, "chosen": chosen, "rejected": rejected} | preference_fields(record)
    yield row | ({"images": images} if some_images else {})


def _sides(record: PreferenceRecord) -> tuple[list[Message], list[Message], list[Message]]:
    chosen, rejected = chosen_and_rejected(record)
    prompt, first, second = split_prompt(conversation_messages(chosen), conversation_messages(rejected))
    return asked(prompt, record.a), first, second
