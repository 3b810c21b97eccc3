"""The sample world's conversations of a seed, and what its simulated annotators say of them, as records."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from apps.demo import annotators
from apps.demo.agents import STYLES, Conversation, converse
from apps.demo.generate import verdict
from apps.demo.world import TASKS
from workers.schema import FeedbackRecord, OutcomeRecord, PreferenceRecord, Task, Trajectory, from_messages
from workers.schema.records import RECORD_TYPES, Kind

PER_TASK = 10
_TOGETHER = 5  # conversations of a task that annotators have before them


@dataclass(frozen=True)
class Sample:
    """One seed's conversations, with what was said of them, split by task."""

    conversations: dict[str, Conversation]
    trajectories: dict[str, Trajectory]
    records: list[FeedbackRecord]  # of the training tasks
    held_out: list[str]

    def with_true_outcomes(self) -> list[FeedbackRecord]:
        return [
            msgspec.structs.replace(record, reward=self.reward(record.trajectory))
            if isinstance(record, OutcomeRecord)
            else record
            for record in self.records
        ]

    def reward(self, one: Trajectory) -> float:
        return self.conversations[str(one.id)].world.reward


def sample(seed: int, *, tasks: int, per_task: int) -> Sample:
    chosen = random.Random(seed).sample(sorted(TASKS), tasks)
    held_out = set(chosen[: tasks // 3])
    spoken = [
        converse(TASKS[task], agent, f"{task}-{seed}-{place}")
        for task in chosen
        for place, agent in enumerate(random.Random(f"{seed}/{task}").choices(list(STYLES), k=per_task))
    ]
    read = {conversation.id: _trajectory(conversation) for conversation in spoken}
    training = [conversation for conversation in spoken if conversation.task.id not in held_out]
    return Sample(
        {conversation.id: conversation for conversation in spoken},
        read,
        [*_feedback(training, read)],
        [conversation.id for conversation in spoken if conversation.task.id in held_out],
    )


def _trajectory(one: Conversation) -> Trajectory:
    return Trajectory(steps=from_messages(one.messages), task=Task(id=one.task.id), id=one.id)


def _feedback(spoken: list[Conversation], read: dict[str, Trajectory]) -> Iterator[FeedbackRecord]:
    said: dict[Kind, Callable[[list[Conversation]], Iterator[dict[str, Any]]]] = {
        "pairwise": annotators.pairs,
        "ranking": annotators.rankings,
        "step": annotators.steps,
        "rubric": annotators.rubric,
        "rating": annotators.ratings,
    }
    by_task: dict[str, list[Conversation]] = {}
    for conversation in spoken:
        by_task.setdefault(conversation.task.id, []).append(conversation)
    for start in range(0, max(map(len, by_task.values())), _TOGETHER):
        some = [
            conversation for group in by_task.values() for conversation in group[start : start + _TOGETHER]
        ]
        for kind, speak in said.items():
            for raw in speak(some):
                yield _record(kind, raw, read)
    for conversation in spoken:
        reward, success = verdict(conversation)
        yield OutcomeRecord(trajectory=read[conversation.id], success=success, reward=reward)


def pairwise_record(raw: dict[str, Any], read: dict[str, Trajectory]) -> PreferenceRecord:
    found = _record("pairwise", raw, read)
    assert isinstance(found, PreferenceRecord)
    return found


def _record(kind: Kind, raw: dict[str, Any], read: dict[str, Trajectory]) -> FeedbackRecord:
    """A record as imports have it, with its trajectories in the place of their names."""
    fields = {key: value for key, value in raw.items() if key not in ("task", "campaign")}
    if "first_error" in fields:
        fields["has_first_error"] = True
    for key in ("a", "b", "trajectory"):
        if key in fields:
            fields[key] = read[fields[key]["trajectory_id"]]
    if "items" in fields:
        fields["trajectories"] = tuple(read[item["trajectory_id"]] for item in fields.pop("items"))
    known: FeedbackRecord = msgspec.convert(fields, RECORD_TYPES[kind], strict=False)
    return known
