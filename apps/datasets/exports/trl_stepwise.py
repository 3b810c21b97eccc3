"""`trl-stepwise`: stepwise supervision as TRL describes it: what comes first, then steps, each right or not.

    {"prompt": "...", "completions": ["...", ...], "labels": [true, false, ...], "origin": "person"}

A step is an agent message with its calls, preceded by what came since the last one (an observation, the user). Good and
neutral steps are right, bad ones are wrong. A row ends at the first unlabelled step: later steps are not known to be
right or wrong. Where only the first error was marked, the steps before it are right, and it is the last one.
"""

from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import Message, as_text, count_named_media, numeric, prompt_and_rest
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from workers.schema import StepLabelRecord
from workers.schema.records import KIND_OF


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    return json_lines(lambda counted: _rows(dataset_version, split, counted), left_out)


def _rows(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    for record in read_dataset_records(dataset_version, split):
        if not isinstance(record, StepLabelRecord):
            left_out[f"{KIND_OF[type(record)]} records"] += 1
            continue
        if (reason := numeric(record)) is not None:
            left_out[reason] += 1
            continue
        labels = step_correctness(record)
        if not labels:
            left_out["step records whose first step has no label"] += 1
            continue
        if not record.has_first_error:
            left_out["labels after a step without one"] += len(record.labels) - len(labels)
        steps = _steps(record)
        prompt, _ = prompt_and_rest(record.trajectory)
        count_named_media(left_out, record.trajectory)
        yield {
            "prompt": as_text(prompt),
            "completions": steps[: len(labels)],
            "labels": labels[: len(steps)],
            "origin": record.origin,
            FIELD: record_text(record),
        }


def step_correctness(record: StepLabelRecord) -> list[bool]:
    """Of the agent steps from the first on, as far as they are known."""
    count = len(record.trajectory.agent_steps)
    if record.has_first_error:
        known = count if record.first_error is None else record.first_error
        return [True] * known + ([False] if record.first_error is not None else [])
    labels: list[bool] = []
    for step in range(count):
        if step not in record.labels:
            break
        labels.append(record.labels[step] != "bad")
    return labels


def _steps(record: StepLabelRecord) -> list[str]:
    """The text of each agent step, with what came before it since the last one."""
    _, rest = prompt_and_rest(record.trajectory)
    steps: list[str] = []
    since: list[Message] = []
    for message in rest:
        since.append(message)
        if message["role"] == "assistant":
            steps.append(as_text(since))
            since = []
    return steps
