"""`verl`: a folder of Parquet files for verl, one for each split.

    rl/SPLIT.parquet    {"data_source", "prompt": [messages], "ability", "reward_model": {"style", "ground_truth"},
                         "extra_info": {"index", "split", "task"}}                       prompts, for RL
    sft/SPLIT.parquet   {"messages": [messages], "task", "origin", "tool_definitions"}   accepted trajectories
    rm/SPLIT.parquet    {"prompt", "chosen", "rejected"}                                 preferences, as text

A column of Parquet has one type: arguments of calls and definitions of tools are JSON text, and a message has the keys
that any message of the files has. verl trains on every agent turn of a conversation, so that `sft` ends before the
first step that was marked bad.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apps.datasets.exports.accepted import DEFAULT, Acceptance, accepted_trajectories
from apps.datasets.exports.columns import LeftOut
from apps.datasets.exports.conversations import Message, as_text, tools_field
from apps.datasets.exports.pairs import text_pairs
from apps.datasets.exports.parquet_files import require_pyarrow, write_file
from apps.datasets.exports.prompts import distinct_prompts
from apps.datasets.exports.sft_rows import trained_prefix
from apps.datasets.models import DatasetVersion
from apps.datasets.splits import SPLITS

Row = dict[str, Any]
_NAMES = {"validation": "val"}  # of splits, in verl's examples


def export(
    dataset_version: DatasetVersion,
    split: str | None,
    left_out: LeftOut,
    folder: Path,
    rule: Acceptance = DEFAULT,
) -> Iterator[str]:
    """Writes the folder; yields the name of a file for each of its rows. A split without a row has no file."""
    arrow = require_pyarrow()
    keys = _message_keys(dataset_version, split, rule)
    for each in SPLITS if split is None else (split,):
        parts = {
            "rl": (_rl_schema(arrow), _prompts(dataset_version, each, left_out)),
            "sft": (_sft_schema(arrow, keys), _accepted(dataset_version, each, left_out, rule)),
            "rm": (_rm_schema(arrow), _preferences(dataset_version, each, left_out)),
        }
        for part, (schema, rows) in parts.items():
            path = folder / part / f"{_NAMES.get(each, each)}.parquet"
            written = 0
            for name in write_file(path, schema, rows):
                written += 1
                yield f"{part}/{name}"
            if not written:
                path.unlink()


def _prompts(dataset_version: DatasetVersion, split: str, left_out: LeftOut) -> Iterator[Row]:
    counted: LeftOut = LeftOut()
    prompts = distinct_prompts(dataset_version, split, counted)
    for index, (trajectory, prompt) in enumerate(prompts):
        reference = trajectory.task.reference
        yield {
            "data_source": f"{dataset_version.project.slug}/{dataset_version.name}",
            "prompt": [_plain(message) for message in prompt],
            "ability": str(trajectory.task.metadata.get("domain") or "agent"),
            "reward_model": {"style": "rule" if reference else "model", "ground_truth": reference or ""},
            "extra_info": {"index": index, "split": split, "task": trajectory.task.id},
        }
    _count(left_out, "rl", counted)


def _accepted(
    dataset_version: DatasetVersion, split: str, left_out: LeftOut, rule: Acceptance
) -> Iterator[Row]:
    counted: LeftOut = LeftOut()
    for accepted in accepted_trajectories(dataset_version, split, rule, counted):
        if messages := trained_prefix(accepted, counted):
            tools = tools_field(accepted.trajectory).get("tools")
            yield {
                "messages": [_with_json_arguments(message) for message in messages],
                "task": accepted.trajectory.task.id,
                "origin": accepted.origin,
                "tool_definitions": json.dumps(tools, ensure_ascii=False) if tools else "",
            }
    _count(left_out, "sft", counted)


def _preferences(dataset_version: DatasetVersion, split: str, left_out: LeftOut) -> Iterator[Row]:
    counted: LeftOut = LeftOut()
    for record, prompt, chosen, rejected in text_pairs(dataset_version, split, counted):
        texts = {"prompt": as_text(prompt), "chosen": as_text(chosen), "rejected": as_text(rejected)}
        yield texts | {"origin": record.origin}
    _count(left_out, "rm", counted)


def _message_keys(dataset_version: DatasetVersion, split: str | None, rule: Acceptance) -> frozenset[str]:
    """Which optional keys the messages of accepted trajectories have."""
    accepted = accepted_trajectories(dataset_version, split, rule, LeftOut())
    rows = (trained_prefix(each, LeftOut()) for each in accepted)
    return frozenset(key for messages in rows for message in messages for key in message)


def _plain(message: Message) -> Row:
    """Role and content; who spoke, where several share a role, is in the text."""
    return {"role": message["role"], "content": as_text([message])}


def _with_json_arguments(message: Message) -> Row:
    if "tool_calls" not in message:
        return message
    calls = [
        call
        | {
            "function": {
                "name": call["function"]["name"],
                "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False),
            }
        }
        for call in message["tool_calls"]
    ]
    return message | {"tool_calls": calls}


def _messages(arrow: Any, keys: frozenset[str] = frozenset()) -> Any:
    text = arrow.string()
    call = [("id", text), ("type", text), ("function", arrow.struct([("name", text), ("arguments", text)]))]
    fields = [("role", text), ("content", text)]
    fields += [(key, text) for key in ("name", "reasoning_content", "tool_call_id") if key in keys]
    fields += [("tool_calls", arrow.list_(arrow.struct(call)))] if "tool_calls" in keys else []
    return arrow.list_(arrow.struct(fields))


def _rl_schema(arrow: Any) -> Any:
    text, number = arrow.string(), arrow.int64()
    return arrow.schema(
        [
            ("data_source", text),
            ("prompt", _messages(arrow)),
            ("ability", text),
            ("reward_model", arrow.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", arrow.struct([("index", number), ("split", text), ("task", text)])),
        ]
    )


def _sft_schema(arrow: Any, keys: frozenset[str]) -> Any:
    text = arrow.string()
    names = ("task", "origin", "tool_definitions")
    return arrow.schema([("messages", _messages(arrow, keys)), *((name, text) for name in names)])


def _rm_schema(arrow: Any) -> Any:
    return arrow.schema([(name, arrow.string()) for name in ("prompt", "chosen", "rejected", "origin")])


def _count(left_out: LeftOut, part: str, counted: LeftOut) -> None:
    for reason, number in counted.items():
        left_out[f"{part}: {reason}"] += number
