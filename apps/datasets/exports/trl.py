"""`trl`: preferences as TRL's trainers read them: explicit prompt, conversational, with a margin.

    {"prompt": [messages], "chosen": [messages], "rejected": [messages], "margin": 0.67, "origin": "person"}

Ties, both-bad, judgements of one criterion and pairs of equal contents have no chosen side and are left out.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.datasets.exports.conversations import (
    decided_pairs,
    lines,
    message,
    messages_of,
    pair_has_tools,
    sides,
    split_prompt,
    told,
)
from apps.datasets.models import DatasetVersion
from workers.schema import PreferenceRecord


def export(dataset_version: DatasetVersion, split: str | None) -> Iterator[str]:
    return lines(partial(decided_pairs, dataset_version, split), pair_has_tools, _row)


def _row(record: PreferenceRecord, tools: bool) -> dict[str, Any]:
    chosen, rejected = sides(record)
    prompt, first, second = split_prompt(messages_of(chosen, tools=tools), messages_of(rejected, tools=tools))
    if not prompt:
        prompt = [message({"role": "user", "content": record.a.task.instruction}, tools=tools)]
    return {"prompt": prompt, "chosen": first, "rejected": second} | told(record)
