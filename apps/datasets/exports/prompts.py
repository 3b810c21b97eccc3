"""`trl-prompts`, `openrlhf-prompts`: prompts to train a policy on by rewards, each once.

    {"prompt": [messages], "reference": "...", "task": "..."}                                   trl-prompts
    {"input": [messages], "label": "...", "datasource": "desk/first@1", "task": "..."}          openrlhf-prompts

A prompt is what the agent was shown before its first step. reference, label: the task's reference answer, or "".
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    Message,
    content_text,
    is_numeric,
    prompt_and_rest,
    tools_field,
    without_images,
)
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from workers.schema import Trajectory
from workers.schema.records import record_trajectories

NO_PROMPT = "trajectories without a prompt"


def export_trl(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for trajectory, prompt in distinct_prompts(dataset_version, split, left_out):
            task = trajectory.task
            row = {"prompt": prompt, "reference": task.reference or "", "task": task.id}
            yield row | tools_field(trajectory)

    return json_lines(rows, left_out)


def export_openrlhf(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for trajectory, prompt in distinct_prompts(dataset_version, split, left_out):
            task = trajectory.task
            row = {"input": prompt, "label": task.reference or "", "datasource": str(dataset_version)}
            yield row | {"task": task.id} | tools_field(trajectory)

    return json_lines(rows, left_out)


def distinct_prompts(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[tuple[Trajectory, list[Message]]]:
    """Each prompt of a task once, with the first trajectory that has it. Images are named in the text, and counted."""
    seen: set[bytes] = set()
    for record in read_dataset_records(dataset_version, split):
        for trajectory in record_trajectories(record):
            prompt = prompt_and_rest(trajectory)[0]
            digest = _digest([trajectory.task.id, prompt])
            if digest in seen:
                continue
            seen.add(digest)
            if is_numeric(trajectory) or not any(content_text(each["content"]).strip() for each in prompt):
                left_out[NO_PROMPT] += 1
            else:
                yield trajectory, without_images(prompt, left_out)


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:16]
