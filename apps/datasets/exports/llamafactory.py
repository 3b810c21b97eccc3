"""`llamafactory`: a folder for LLaMA-Factory's `dataset_dir`: dataset_info.json, and a file for each kind of data.

    preference.jsonl   {"conversations", "chosen": {"from", "value"}, "rejected": {...}}    stages rm and dpo
    kto.jsonl          {"conversations", "kto_tag": true}                                  stage kto
    sft.jsonl          {"conversations"}: accepted trajectories                            stage sft

each with `system`, `tools` (JSON) and `origin`. Conversations are in its ShareGPT form: a person or a result, then the
agent, by turns. Messages that follow one another on a side are joined; what has no such form is counted. It masks no
single turn, so that `sft` ends before the first step that was marked bad.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.accepted import DEFAULT, Acceptance, accepted_trajectories
from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.conversations import (
    Message,
    count_named_media,
    prompt_and_rest,
    tools_field,
    without_images,
)
from apps.datasets.exports.pairs import SEVERAL, text_pairs
from apps.datasets.exports.sft_rows import trained_prefix
from apps.datasets.exports.sharegpt import TURNS, ends_with_agent, sharegpt_turns
from apps.datasets.exports.trl_unpaired import labelled_trajectories
from apps.datasets.models import DatasetVersion

Row = dict[str, Any]
NO_ALTERNATION = "conversations that cannot be written by turns"
_TAGS = {
    "role_tag": "from",
    "content_tag": "value",
    "user_tag": "human",
    "assistant_tag": "gpt",
    "observation_tag": "observation",
    "function_tag": "function_call",
    "system_tag": "system",
}
_COLUMNS = {"messages": "conversations", "system": "system", "tools": "tools"}
PARTS: dict[str, Row] = {
    "preference": {"ranking": True, "columns": _COLUMNS | {"chosen": "chosen", "rejected": "rejected"}},
    "kto": {"columns": _COLUMNS | {"kto_tag": "kto_tag"}},
    "sft": {"columns": _COLUMNS},
}


def export(
    dataset_version: DatasetVersion,
    split: str | None,
    left_out: LeftOut,
    folder: Path,
    rule: Acceptance = DEFAULT,
) -> Iterator[str]:
    """Writes the folder; yields the name of a file for each of its rows. A kind of data without a row has no file."""
    info = {}
    for part, rows in {
        "preference": _preferences(dataset_version, split, left_out),
        "kto": _labelled(dataset_version, split, left_out),
        "sft": _accepted(dataset_version, split, left_out, rule),
    }.items():
        path = folder / f"{part}.jsonl"
        written = 0
        with path.open("w", encoding="utf-8") as out:
            for row in rows:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
                yield path.name
        if written:
            name = f"{dataset_version.name}_{part}"
            info[name] = {"file_name": path.name, "formatting": "sharegpt", "tags": _TAGS} | PARTS[part]
        else:
            path.unlink()
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")


def _preferences(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[Row]:
    counted: LeftOut = LeftOut()
    for record, prompt, chosen, rejected in text_pairs(dataset_version, split, counted):
        turns = _turns(prompt, counted)
        sides = [sharegpt_turns(messages, LeftOut()) for messages in (chosen, rejected)]
        if turns is None or (turns[1] and ends_with_agent(turns[1])):
            counted[NO_ALTERNATION] += 1
        elif any(side is None or len(side) != 1 or side[0]["from"] not in TURNS[1] for side in sides):
            counted[SEVERAL] += 1
        else:
            first, second = (side[0] for side in sides if side)
            row = {"conversations": turns[1], "chosen": first, "rejected": second, "system": turns[0]}
            yield row | _about(record.origin, tools_field(record.a, record.b)) | {FIELD: record_text(record)}
    _count(left_out, "preference", counted)


def _labelled(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[Row]:
    counted: LeftOut = LeftOut()
    for trajectory, label, origin, text in labelled_trajectories(dataset_version, split, counted):
        prompt, rest = prompt_and_rest(trajectory)
        messages = without_images([*prompt, *rest], counted)
        while messages and messages[-1]["role"] != "assistant":
            messages.pop()
        turns = _turns(messages, counted)
        if turns is None or not ends_with_agent(turns[1]):
            counted[NO_ALTERNATION] += 1
            continue
        count_named_media(counted, trajectory)
        row = {"conversations": turns[1], "kto_tag": label, "system": turns[0]}
        yield row | _about(origin, tools_field(trajectory)) | {FIELD: text}
    _count(left_out, "kto", counted)


def _accepted(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut, rule: Acceptance
) -> Iterator[Row]:
    counted: LeftOut = LeftOut()
    for accepted in accepted_trajectories(dataset_version, split, rule, counted):
        messages = trained_prefix(accepted, counted)
        if not messages:
            continue
        turns = _turns(messages, counted)
        if turns is None or not ends_with_agent(turns[1]):
            counted[NO_ALTERNATION] += 1
            continue
        row = {"conversations": turns[1], "system": turns[0], "task": accepted.trajectory.task.id}
        yield row | _about(accepted.origin, tools_field(accepted.trajectory))
    _count(left_out, "sft", counted)


def _turns(messages: list[Message], counted: LeftOut) -> tuple[str, list[Row]] | None:
    """The system prompt, and the turns after it; None where the messages cannot be written by turns."""
    system = []
    while messages and messages[0]["role"] == "system":
        system.append(messages[0]["content"])
        messages = messages[1:]
    turns = sharegpt_turns(messages, counted)
    return None if turns is None or not turns else ("\n\n".join(system), turns)


def _about(origin: str, tools: Row) -> Row:
    return {"tools": json.dumps(tools["tools"], ensure_ascii=False) if tools else "", "origin": origin}


def _count(left_out: LeftOut, part: str, counted: LeftOut) -> None:
    for reason, number in counted.items():
        left_out[f"{part}: {reason}"] += number
