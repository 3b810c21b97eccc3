r"""`hh` (Anthropic's HH-RLHF): {"chosen", "rejected"}, dialogues with "\n\nHuman:" and "\n\nAssistant:", JSON lines.

The task is the dialogue both share; where they part before the last turn, the longest common beginning.
An empty last turn is an agent step that says nothing.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.json_lines import read_json_lines
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback_types.pairwise import PreferenceValue
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, from_messages
from workers.schema.messages import build_trajectory
from workers.schema.patterns import TextPattern

_FIELDS = RowFields(texts=("chosen", "rejected"))
_TURN = TextPattern(r"\n\n(Human|Assistant):")
_ROLE = {"Human": "user", "Assistant": "assistant"}


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_json_lines(stream, parse, _FIELDS)


def parse(record: dict[str, Any]) -> Iterator[Incoming]:
    chosen, rejected = turns(record.get("chosen"), "/chosen"), turns(record.get("rejected"), "/rejected")
    task = shared_task(chosen, rejected)
    places = (_trajectory(chosen, task, "/chosen"), _trajectory(rejected, task, "/rejected"))
    yield Incoming(
        kind="pairwise", task=task, places=places, annotator="hh", value=PreferenceValue(choice="a")
    )


def turns(dialogue: Any, pointer: str) -> list[dict[str, str]]:
    if not isinstance(dialogue, str) or not _TURN.match(dialogue):
        raise InvalidRecord(r'expected a dialogue that begins with "\n\nHuman:".', pointer=pointer)
    pieces = _TURN.split(dialogue)[1:]
    return [
        {"role": _ROLE[who], "content": text.strip()}
        for who, text in zip(pieces[::2], pieces[1::2], strict=True)
    ]


def shared_task(a: list[dict[str, str]], b: list[dict[str, str]]) -> Task:
    shared = []
    for turn, other_turn in zip(a[:-1], b[:-1], strict=False):
        if turn != other_turn:
            break
        shared.append(f"{turn['role']}: {turn['content']}")
    text = "\n\n".join(shared)
    return Task(id=f"hh-{hashlib.sha256(text.encode()).hexdigest()[:16]}", instruction=text)


def _trajectory(messages: list[dict[str, str]], task: Task, pointer: str) -> Trajectory:
    return build_trajectory(from_messages(messages, pointer=pointer), task, pointer=pointer)
