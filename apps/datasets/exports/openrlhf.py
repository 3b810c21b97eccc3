"""`openrlhf`: preferences as whole conversations, as OpenRLHF's reward trainer reads them by its chat template.

    {"chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

and `tools` where the trajectories state their definitions. It reads no images: they are named in the text, and counted.

Where messages of the file differ in their keys (some have calls), the columns are `chosen_messages` and
`rejected_messages`, for `--data.chosen_key` and `--data.rejected_key`: `datasets` reads such a column as JSON, and
keeps that type for the text that OpenRLHF's map writes into a column of the same name, which breaks it into letters.

`openrlhf-dpo` always has these names, and the common prompt as `prompt_messages` (`--data.prompt_key`). Without that
key its DPO trainer takes all messages but the last for the prompt, which is wrong where the sides part earlier.
"""

from collections.abc import Iterator
from typing import Any

from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    chosen_and_rejected,
    conversation_messages,
    count_named_media,
    decided_pairs,
    preference_fields,
    without_images,
)
from apps.datasets.exports.pairs import ALIKE, text_pairs
from apps.datasets.models import DatasetVersion


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    suffix = "" if _have_equal_keys(dataset_version, split) else "_messages"

    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for record in decided_pairs(dataset_version, split, left_out):
            chosen, rejected = (
                without_images(conversation_messages(trajectory), left_out)
                for trajectory in chosen_and_rejected(record)
            )
            if chosen == rejected:
                left_out[ALIKE] += 1
            else:
                count_named_media(left_out, record.a, record.b)
                sides = {f"chosen{suffix}": chosen, f"rejected{suffix}": rejected}
                yield sides | preference_fields(record)

    return json_lines(rows, left_out)


def _have_equal_keys(dataset_version: DatasetVersion, split: str | None) -> bool:
    """Whether all messages of the file have the same keys."""
    keys = {
        frozenset(message)
        for record in decided_pairs(dataset_version, split, LeftOut())
        for trajectory in (record.a, record.b)
        for message in conversation_messages(trajectory)
    }
    return len(keys) <= 1


def export_dpo(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for record, prompt, chosen, rejected in text_pairs(dataset_version, split, left_out):
            sides = {"prompt_messages": prompt, "chosen_messages": chosen, "rejected_messages": rejected}
            yield sides | preference_fields(record)

    return json_lines(rows, left_out)
