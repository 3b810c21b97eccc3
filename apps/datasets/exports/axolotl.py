"""`axolotl-dpo`: preferences for axolotl's `chat_template.default`: what comes before, and one answer of each side.

    {"messages": [messages], "chosen": {"role", "content"}, "rejected": {"role", "content"}, "origin": "person"}

Its strategy reads role and content alone, so that pairs whose sides have several messages, or calls, are left out and
counted; of what comes before, calls and reasoning are written in the text.
"""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import Message, content_text, message_text
from apps.datasets.exports.pairs import SEVERAL, text_pairs
from apps.datasets.models import DatasetVersion

_NOTHING = "pairs in which a side answers nothing"


def export_dpo(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for record, prompt, chosen, rejected in text_pairs(dataset_version, split, left_out):
            if reason := _refusal(chosen, rejected):
                left_out[reason] += 1
                continue
            sides = {"chosen": plain_message(chosen[0]), "rejected": plain_message(rejected[0])}
            about = {"origin": record.origin, FIELD: record_text(record)}
            yield {"messages": [plain_message(message) for message in prompt]} | sides | about

    return json_lines(rows, left_out)


def _refusal(chosen: list[Message], rejected: list[Message]) -> str | None:
    if len(chosen) != 1 or len(rejected) != 1 or any("tool_calls" in side[0] for side in (chosen, rejected)):
        return SEVERAL
    if not all(content_text(side[0]["content"]).strip() for side in (chosen, rejected)):
        return _NOTHING
    return None


def plain_message(message: Message) -> Message:
    """Role and content alone; reasoning and calls are in the text."""
    return {"role": message["role"], "content": message_text(message)}
