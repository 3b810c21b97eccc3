"""`trl-failed-steps`: the actions that failed, alone, for trainers that lower their likelihood (SEAgent, arXiv
2508.04700: adversarial imitation of failure actions).

    {"prompt": [messages], "completion": [message], "label": false, "correction": [message], "reasons": ["bad", ...]}

with `task`, `trajectory`, `agent_step`, `origin`, and `tools` where the trajectory has any. TRL's KTOTrainer reads
`prompt`, `completion` and `label`. A step failed where at least half of its labels call it bad (`bad`), where it was
marked as the first error (`first_error`), or where a tool reported a failure of its call (`failed_call`), unless people
or judges labelled it and less than half call it bad. `correction` is what the agent should have done; empty where no
one wrote it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    Message,
    asked,
    conversation_messages,
    count_named_media,
    is_numeric,
    message_text,
    step_messages,
    tools_field,
    without_images,
)
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.trajectories.patterns import count_failures
from workers.schema import StepLabelRecord, Trajectory
from workers.schema.records import record_trajectories
from workers.schema.step_corrections import Correction, corrected_step

_SOUND = "trajectories without a failed step"
_NUMERIC = "numeric trajectories, which have no text"
_EMPTY = "failed steps in which there is nothing to read"


@dataclass(slots=True)
class _Evidence:
    """By agent step: bad labels and labels, marks as first errors, the first correction, origins of the feedback."""

    bad: Counter[int] = field(default_factory=Counter)
    labels: Counter[int] = field(default_factory=Counter)
    errors: Counter[int] = field(default_factory=Counter)
    corrections: dict[int, Correction] = field(default_factory=dict)
    origins: dict[int, set[str]] = field(default_factory=dict)

    def add(self, record: StepLabelRecord) -> None:
        for step, label in record.labels.items():
            self.labels[step] += 1
            self.bad[step] += label == "bad"
            self.origins.setdefault(step, set()).add(record.origin)
        if record.has_first_error and record.first_error is not None:
            self.errors[record.first_error] += 1
            self.origins.setdefault(record.first_error, set()).add(record.origin)
        for step, correction in record.corrections.items():
            self.corrections.setdefault(step, correction)

    def reasons(self, step: int, failures: int) -> list[str]:
        """Why the step failed; empty where it did not."""
        is_bad = 0 < self.labels[step] <= 2 * self.bad[step]
        reasons = ["bad"] * is_bad + ["first_error"] * (self.errors[step] > 0)
        is_good = self.labels[step] > 0 and not is_bad
        return reasons + ["failed_call"] * (failures > 0 and not is_good)

    def origin(self, step: int) -> str:
        """`observation`: the tool reported it."""
        return ", ".join(sorted(self.origins.get(step, ()))) or "observation"


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    return json_lines(lambda counted: _rows(dataset_version, split, counted), left_out)


def _rows(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    evidence: dict[str, _Evidence] = {}
    for record in read_dataset_records(dataset_version, split):
        for trajectory in record_trajectories(record):
            found = evidence.setdefault(_key(trajectory), _Evidence())
            if isinstance(record, StepLabelRecord):
                found.add(record)
    for record in read_dataset_records(dataset_version, split):
        for trajectory in record_trajectories(record):
            known = evidence.pop(_key(trajectory), None)
            if known is None:
                continue
            if is_numeric(trajectory):
                left_out[_NUMERIC] += 1
                continue
            count = 0
            for row in _failed(trajectory, known, left_out):
                count += 1
                yield row
            left_out[_SOUND] += count == 0


def _failed(trajectory: Trajectory, known: _Evidence, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    number = {"trajectory": int(trajectory.id)} if trajectory.id and trajectory.id.isdecimal() else {}
    for agent_step, place in enumerate(trajectory.agent_steps):
        step = trajectory.steps[place]
        reasons = known.reasons(agent_step, count_failures(step))
        if not reasons:
            continue
        completion = without_images(step_messages(replace(step, observation=())), left_out)
        if not any(message_text(message).strip() for message in completion):
            left_out[_EMPTY] += 1
            continue
        before = replace(trajectory, steps=trajectory.steps[:place])
        correction: list[Message] = []
        if agent_step in known.corrections:
            correction = step_messages(corrected_step(step, known.corrections[agent_step]))
        count_named_media(left_out, before)
        yield {
            "prompt": without_images(asked(conversation_messages(before), trajectory), left_out),
            "completion": completion,
            "label": False,
            "correction": correction,
            "reasons": reasons,
            "task": trajectory.task.id,
            **number,
            "agent_step": agent_step,
            "origin": known.origin(agent_step),
            **tools_field(trajectory),
        }


def _key(trajectory: Trajectory) -> str:
    return trajectory.id or trajectory.content_hash
