"""Corrections of steps for trainers of policies: step pairs, and revised trajectories for supervised fine-tuning.

    {"prompt": [messages], "chosen": [message], "rejected": [message]}                     trl-step-pairs
    {"prompt_messages": [messages], "chosen_messages": [message], "rejected_messages": …}  openrlhf-step-pairs
    {"prompt": [messages], "completion": [messages]}                                       trl-sft-revised
    {"messages": [messages]}                                                               openrlhf-sft-revised

each with `task`, `trajectory`, `agent_step` (the corrected one), `origin`, and `tools` where the trajectory has any.
A step pair is what Step-DPO (arXiv 2406.18629) trains on: the steps before are the prompt, and the sides are one step
each, the one that an annotator wrote and the one that was. A revised trajectory is that of Agent-R (arXiv 2501.11425):
it ends with the correction of the first error, and what came after the error is dropped. All of its agent turns are
trained on: those before the first error were not called bad by who marked it.
"""

from collections.abc import Iterator
from typing import Any

from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    Message,
    asked,
    conversation_messages,
    count_named_media,
    has_images,
    numeric,
    prompt_and_rest,
    prompt_images,
    split_prompt,
    tools_field,
    with_images,
    without_images,
)
from apps.datasets.exports.pairs import ALIKE
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from workers.schema import StepLabelRecord, Trajectory
from workers.schema.records import KIND_OF
from workers.schema.step_corrections import (
    EQUAL,
    REPEATED,
    StepPair,
    first_error,
    iterate_step_pairs,
    revised_trajectory,
)

Row = dict[str, Any]
_BARE = "step records without a correction"
_NO_ERROR = "corrections in trajectories without an error"
_UNCORRECTED = "corrections in trajectories whose first error has none"
_LATER = "corrections after the first error"


def export_trl_pairs(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    some_images = any(
        has_images(_sides(dataset_version, pair)[0]) for pair in _pairs(dataset_version, split, LeftOut())
    )

    def rows(left_out: LeftOut) -> Iterator[Row]:
        for pair, prompt, chosen, rejected in _written_pairs(dataset_version, split, left_out):
            messages, images = prompt_images(prompt, left_out, parts=some_images)
            row = {"prompt": messages, "chosen": chosen, "rejected": rejected}
            yield row | ({"images": images} if some_images else {}) | _about(pair.source, pair.agent_step)

    return json_lines(rows, left_out)


def export_openrlhf_pairs(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[Row]:
        for pair, prompt, chosen, rejected in _written_pairs(dataset_version, split, left_out):
            sides = {"chosen_messages": chosen, "rejected_messages": rejected}
            before = {"prompt_messages": without_images(prompt, left_out)}
            yield before | sides | _about(pair.source, pair.agent_step)

    return json_lines(rows, left_out)


def export_trl_sft(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[Row]:
        for record, revised in _revised(dataset_version, split, left_out):
            prompt, completion = (without_images(part, left_out) for part in prompt_and_rest(revised))
            yield {"prompt": prompt, "completion": completion} | _about(record, first_error(record))

    return json_lines(rows, left_out)


def export_openrlhf_sft(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[Row]:
        for record, revised in _revised(dataset_version, split, left_out):
            prompt, rest = prompt_and_rest(revised)
            yield {"messages": without_images([*prompt, *rest], left_out)} | _about(
                record, first_error(record)
            )

    return json_lines(rows, left_out)


def _about(record: StepLabelRecord, agent_step: int | None) -> Row:
    """The fields of a row other than its messages."""
    trajectory = record.trajectory
    number = {"trajectory": int(trajectory.id)} if trajectory.id and trajectory.id.isdecimal() else {}
    about = {"agent_step": agent_step, "origin": record.origin}
    return {"task": trajectory.task.id} | number | about | tools_field(trajectory)


def _corrected(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[StepLabelRecord]:
    """The records with corrections; the others are counted."""
    for record in read_dataset_records(dataset_version, split):
        if not isinstance(record, StepLabelRecord):
            left_out[f"{KIND_OF[type(record)]} records"] += 1
        elif not record.corrections:
            left_out[_BARE] += 1
        elif (reason := numeric(record)) is not None:
            left_out[reason] += 1
        else:
            yield record


def _pairs(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[StepPair]:
    skipped: LeftOut = LeftOut()
    records = _corrected(dataset_version, split, left_out)
    yield from iterate_step_pairs(records, weight=1.0, skipped=skipped)
    for reason, count in skipped.items():
        left_out[f"corrections {reason}"] += count


def _sides(
    dataset_version: DatasetVersion, pair: StepPair
) -> tuple[list[Message], list[Message], list[Message]]:
    record = with_images(dataset_version, pair.comparison)
    prompt, chosen, rejected = split_prompt(conversation_messages(record.a), conversation_messages(record.b))
    return asked(prompt, record.a), chosen, rejected


def _written_pairs(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[tuple[StepPair, list[Message], list[Message], list[Message]]]:
    """Pair, prompt, chosen and rejected step."""
    for pair in _pairs(dataset_version, split, left_out):
        prompt, first, second = _sides(dataset_version, pair)
        chosen, rejected = without_images(first, left_out), without_images(second, left_out)
        if chosen == rejected:
            left_out[ALIKE] += 1
        else:
            count_named_media(left_out, pair.comparison.a, pair.comparison.b)
            yield pair, prompt, chosen, rejected


def _revised(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[tuple[StepLabelRecord, Trajectory]]:
    """Each record whose first error has a correction, with the revised trajectory; equal ones once."""
    seen: set[str] = set()
    for record in _corrected(dataset_version, split, left_out):
        error, revised = first_error(record), revised_trajectory(record)
        if error is None:
            left_out[_NO_ERROR] += len(record.corrections)
        elif error not in record.corrections:
            left_out[_UNCORRECTED] += len(record.corrections)
        elif revised is None:
            left_out[f"corrections {EQUAL}"] += 1
        elif revised.content_hash in seen:
            left_out[f"corrections {REPEATED}"] += 1
        else:
            seen.add(revised.content_hash)
            left_out[_LATER] += sum(step > error for step in record.corrections)
            count_named_media(left_out, revised)
            yield record, revised
