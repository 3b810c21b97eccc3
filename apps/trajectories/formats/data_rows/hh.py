r"""Anthropic's HH-RLHF: {"chosen", "rejected"}, dialogues with "\n\nHuman:" and "\n\nAssistant:": two trajectories.

The task is the dialogue both share; where they part before the last turn, the longest common beginning. An empty last
turn is an agent step that says nothing. Which is better is feedback (`import_feedback --format hh`).
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.dialogues import DialogueTurn, dialogue_turns
from apps.trajectories.formats.data_rows.row_trajectories import OUTCOME_READ, row_trajectory
from apps.trajectories.formats.data_rows.trainer_rows import Messages, prompt_task
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory, clean
from workers.schema.decode import optional_str, require_object

SIGN = "an object with `chosen` and `rejected`, texts that begin with `Human:`"
SIDES = ("chosen", "rejected")
_SHARED, _TASK = "shared", "row_task"  # of a side: what both begin with; the task where that is nothing
READ = (*OUTCOME_READ, *(f"/{name}" for name in (*SIDES, _SHARED, _TASK)))


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    sides = [document[side] for side in SIDES if side in document]
    is_whole = len(sides) == 2 or (len(sides) == 1 and (_SHARED in document or _TASK in document))
    return is_whole and all(
        isinstance(side, str) and side.lstrip().startswith(("Human:", "Assistant:")) for side in sides
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    row = require_object(document)
    if not all(side in row for side in SIDES):
        yield "", document
        return
    both = [_turns(row, side) for side in SIDES]
    shared = _shared(*both)
    added = {_SHARED: shared} if shared else {_TASK: prompt_task([], [_messages(turns) for turns in both]).id}
    for other in SIDES[::-1]:
        yield "", added | {name: value for name, value in row.items() if name != other}


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    side = next((name for name in SIDES if name in row), SIDES[0])
    messages = _messages(_turns(row, side))
    shared = optional_str(row.get(_SHARED), pointer=f"/{_SHARED}") or ""
    size = len(dialogue_turns(shared) or [])
    task = optional_str(row.get(_TASK), pointer=f"/{_TASK}")
    return row_trajectory(
        messages[:size],
        messages[size:],
        row,
        known=(side, _SHARED, _TASK),
        pointer=f"/{side}",
        task=Task(id=task) if task else None,
    )


def _turns(row: dict[str, Any], side: str) -> list[DialogueTurn]:
    text = row.get(side)
    turns = dialogue_turns(text) if isinstance(text, str) else None
    if turns is None:
        raise InvalidRecord(r'expected a dialogue that begins with "\n\nHuman:".', pointer=f"/{side}")
    return turns


def _messages(turns: list[DialogueTurn]) -> Messages:
    return [{"role": turn.role, "content": turn.content} for turn in turns]


def _shared(chosen: list[DialogueTurn], rejected: list[DialogueTurn]) -> str:
    size = 0
    for turn, other in zip(chosen[:-1], rejected[:-1], strict=False):
        if (turn.role, turn.content) != (other.role, other.content):
            break
        size += 1
    return "".join(turn.text for turn in chosen[:size])
