"""Preferences for trainers: {"chosen", "rejected"} with a prompt, or with the prompt in both: two trajectories a row.

Read are the rows of TRL, OpenRLHF and RewardBench (`prompt`, texts or messages) and LLaMA-Factory's (`conversations`,
or `instruction`, `input`, `system` and `history`). The prompt that both sides only begin with is found as TRL finds it.
Which is better is feedback: `import_feedback --format trl` reads the same rows, and means these trajectories.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows import alpaca, hh
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    decoded_messages,
    row_trajectory,
)
from apps.trajectories.formats.data_rows.trainer_rows import message_column, prompt_and_answers, prompt_task
from workers.schema import Task, Trajectory, clean
from workers.schema.decode import optional_str, require_object

SIGN = "an object with `chosen` and `rejected`, or with `chosen_messages` and `rejected_messages`"
SIDES = ("chosen", "rejected")
_TASK = "row_task"  # of a side whose prompt no column holds
_PROMPTS = ("prompt", "conversations", "question", "query", "context", "input")
# Other names of the two sides: of stack-exchange-paired, and of data sets that spell them out.
_OTHER_SIDES = (
    ("response_j", "response_k"),
    ("chosen_response", "rejected_response"),
    ("better_response", "worse_response"),
    ("preferred", "dispreferred"),
    ("preferred", "other"),
    ("preferred", "rejected"),
    ("preferred_response", "dispreferred_response"),
    ("winner_response", "loser_response"),
    ("accepted_response", "rejected_response"),
    ("chosen_answer", "rejected_answer"),
    ("good_res", "bad_res"),
    ("response_chosen", "response_rejected"),
    ("accepted", "rejected"),
)
_TEXTS = ("instruction", "input", "history")
_MODELS = ("{}_model", "{}-model", "model_{}", "{}_generator", "{}_policy")
READ = (*OUTCOME_READ, "/history", "/images", "/system", f"/{_TASK}")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or hh.sniff(document):
        return False
    if any(all(isinstance(document.get(side), str | list) for side in pair) for pair in _OTHER_SIDES):
        return any(name in document for name in (*_PROMPTS, *_TEXTS))
    if all(isinstance(document.get(f"{side}_messages"), list) for side in SIDES):
        return True
    sides = [document[side] for side in SIDES if side in document]
    is_side = len(sides) == 1 and (
        _TASK in document or any(name in document for name in (*_PROMPTS, *_TEXTS))
    )
    return (len(sides) == 2 or is_side) and all(isinstance(side, str | list | dict) for side in sides)


def split(document: Any) -> Iterator[tuple[str, Any]]:
    row = _with_sides(require_object(document))
    if all(
        f"{side}_messages" in row for side in SIDES
    ):  # whole conversations, as LLaMA-Factory's newer rows have
        row = {name.removesuffix("_messages"): value for name, value in row.items()}
    if not all(side in row for side in SIDES):
        yield "", row
        return
    _, prompt_names = _prompt_column(row)
    added = {} if prompt_names else _shared_prompt(row)
    for other in SIDES[::-1]:
        yield "", added | {name: value for name, value in row.items() if other not in name}


def _with_sides(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the two sides under their own names."""
    for pair in _OTHER_SIDES:
        if all(side in row for side in pair) and not any(side in row for side in SIDES):
            names = dict(zip(pair, SIDES, strict=True))
            return {names.get(key, key): value for key, value in row.items()}
    return row


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    side = next((name for name in SIDES if name in row), SIDES[0])
    prompt, names = _prompt_column(row)
    columns = row | {"prompt": prompt, side: decoded_messages(row.get(side))}
    asked, (answer,) = prompt_and_answers(columns, side, extract=True)
    agent = next((row[each] for name in _MODELS if isinstance(row.get(each := name.format(side)), str)), "")
    task = optional_str(row.get(_TASK), pointer=f"/{_TASK}")
    return row_trajectory(
        asked,
        answer or answer_messages(row, side),
        row,
        known=(side, *names, "images", "system", _TASK),
        pointer=f"/{side}",
        task=Task(id=task) if task else None,
        agent=agent,
    )


def _prompt_column(row: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The prompt, and the columns that hold it; none where it is only in the answers."""
    if row.get("prompt") in (None, "", []) and isinstance(row.get("instruction"), str):
        return alpaca.prompt_messages(row), _TEXTS
    name = next((name for name in _PROMPTS if row.get(name) not in (None, "", [])), None)
    return (None, ()) if name is None else (decoded_messages(row[name]), (name,))


def _shared_prompt(row: dict[str, Any]) -> dict[str, Any]:
    """What the part of each side is given, which cannot be found in one side alone."""
    columns = {side: decoded_messages(row[side]) for side in SIDES}
    prompt, answers = prompt_and_answers(columns, *SIDES, extract=True)
    if not prompt:
        return {_TASK: prompt_task([], answers).id}
    if all(isinstance(columns[side], str) for side in SIDES):
        return {"prompt": prompt[0]["content"]}
    return {"prompt": message_column(columns, SIDES[0])[: len(prompt)]}
