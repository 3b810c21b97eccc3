"""`trl`: preferences as TRL's trainers read them: explicit prompt, conversational, with a margin.

    {"prompt": [messages], "chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

Ties, both-bad, judgements of one criterion and pairs of equal contents have no chosen side and are left out.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.datasets.exports.conversations import (
    chosen_and_rejected,
    conversation_message,
    conversation_messages,
    decided_pairs,
    json_lines,
    pair_has_tools,
    preference_fields,
    split_prompt,
)
from apps.datasets.models import DatasetVersion
from workers.schema import PreferenceRecord


def export(dataset_version: DatasetVersion, split: str | None) -> Iterator[str]:
    return json_lines(partial(decided_pairs, dataset_version, split), pair_has_tools, _row)


def _row(record: PreferenceRecord, tools: bool) -> dict[str, Any]:
    chosen, rejected = chosen_and_rejected(record)
    prompt, first, second = split_prompt(
        conversation_messages(chosen, tools=tools), conversation_messages(rejected, tools=tools)
    )
    if not prompt:
        prompt = [conversation_message({"role": "user", "content": record.a.task.instruction}, tools=tools)]
    return {"prompt": prompt, "chosen": first, "rejected": second} | preference_fields(record)
