"""`trl-reflections`: what was written about an attempt, for a model that reflects (Retroformer, arXiv 2308.02151; SEP,
arXiv 2402.03659): the attempt, the reflection, and the attempt after it.

    {"prompt": [message], "completion": [message], "retry": [messages], "gain": 1.0}

with `task`, `trajectory`, `retry_trajectory`, `annotator` and `origin`. The prompt is the task and the attempt as text,
its outcome, and the question what to do differently. The completion is the comments of one annotator, those about steps
in their order, or the `reflection` in the metadata of the attempt, which the agent wrote itself (origin `agent`).
`retry` is the next attempt of the same agent at the same task, by `attempt` of the metadata where all of them have one,
else in the order of import. `gain` is its reward less that of the attempt (successes count as 1), null where an outcome
is not known: what a policy of reflections is rewarded with. TRL's SFTTrainer reads `prompt` and `completion`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    as_text,
    conversation_messages,
    count_named_media,
    is_numeric,
    without_images,
)
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from workers.schema import CommentRecord, OutcomeRecord, Trajectory
from workers.schema.records import record_trajectories

QUESTION = "What should be done differently in the next attempt?"
_LAST = "reflections on attempts without a later one"
_NUMERIC = "reflections on numeric trajectories, which have no text"
_SILENT = "trajectories that no one reflected on"


@dataclass(slots=True)
class _Attempt:
    """order: of the attempts of one agent at one task. comments: by annotator and origin, (step, text) each."""

    key: str
    group: tuple[str, str]
    attempt: int | None
    number: int
    reward: float | None
    comments: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict)


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    return json_lines(lambda counted: _rows(dataset_version, split, counted), left_out)


def _rows(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[dict[str, Any]]:
    attempts = _attempts(dataset_version, split)
    following = _following(attempts.values())
    commented = [attempt for attempt in attempts.values() if attempt.comments]
    left_out[_SILENT] += len(attempts) - len(commented)
    needed = {attempt.key for attempt in commented} | {
        following[attempt.key] for attempt in commented if attempt.key in following
    }
    content: dict[str, Trajectory] = {}
    for record in read_dataset_records(dataset_version, split):
        for trajectory in record_trajectories(record):
            if (key := _key(trajectory)) in needed:
                content.setdefault(key, trajectory)
    for attempt in commented:
        reflections = len(attempt.comments)
        if attempt.key not in following:
            left_out[_LAST] += reflections
        elif is_numeric(content[attempt.key]) or is_numeric(content[following[attempt.key]]):
            left_out[_NUMERIC] += reflections
        else:
            retry = attempts[following[attempt.key]]
            yield from _reflections(attempt, retry, content, left_out)


def _reflections(
    attempt: _Attempt, retry: _Attempt, content: dict[str, Trajectory], left_out: LeftOut
) -> Iterator[dict[str, Any]]:
    first, second = content[attempt.key], content[retry.key]
    gain = None if attempt.reward is None or retry.reward is None else retry.reward - attempt.reward
    for (annotator, origin), comments in sorted(attempt.comments.items()):
        text = "\n".join(text for _, text in sorted(comments, key=lambda pair: pair[0]))
        count_named_media(left_out, first, second)
        yield {
            "prompt": [{"role": "user", "content": _prompt(first, attempt.reward, left_out)}],
            "completion": [{"role": "assistant", "content": text}],
            "retry": without_images(conversation_messages(second), left_out),
            "gain": gain,
            "task": first.task.id,
            **_numbers(attempt, retry),
            "annotator": annotator,
            "origin": origin,
        }


def _numbers(attempt: _Attempt, retry: _Attempt) -> dict[str, int]:
    """Of stored trajectories, which an imported dataset version may not have."""
    if not (attempt.key.isdecimal() and retry.key.isdecimal()):
        return {}
    return {"trajectory": int(attempt.key), "retry_trajectory": int(retry.key)}


def _prompt(trajectory: Trajectory, reward: float | None, left_out: LeftOut) -> str:
    messages = without_images(conversation_messages(trajectory), left_out)
    known = {True: "The attempt succeeded.", False: "The attempt failed."}.get(trajectory.success)  # type: ignore[arg-type]
    if known is None and reward is not None:
        known = f"The reward of the attempt is {reward:g}."
    parts = [trajectory.task.instruction, f"<attempt>\n{as_text(messages)}\n</attempt>", known, QUESTION]
    return "\n\n".join(part for part in parts if part)


def _attempts(dataset_version: DatasetVersion, split: str | None) -> dict[str, _Attempt]:
    """All trajectories of the version by key, in their order; with what was written about them."""
    found: dict[str, _Attempt] = {}
    for record in read_dataset_records(dataset_version, split):
        for trajectory in record_trajectories(record):
            attempt = found.setdefault(_key(trajectory), _attempt(trajectory, len(found)))
            if isinstance(record, OutcomeRecord) and attempt.reward is None:
                attempt.reward = record.reward if record.reward is not None else float(record.success)
        if isinstance(record, CommentRecord) and record.text.strip():
            first = record.anchor.steps[0] if record.anchor is not None else -1
            where = f"Step {first}: " if record.anchor is not None else ""
            comments = found[_key(record.trajectory)].comments
            own = comments.setdefault((record.annotator, record.origin), [])
            if (line := (first, f"{where}{record.text.strip()}")) not in own:
                own.append(line)
    return found


def _attempt(trajectory: Trajectory, number: int) -> _Attempt:
    stated = trajectory.metadata.get("attempt")
    known = trajectory.success
    reward = trajectory.reward if trajectory.reward is not None else None if known is None else float(known)
    attempt = _Attempt(
        key=_key(trajectory),
        group=(trajectory.task.id, trajectory.agent),
        attempt=stated if isinstance(stated, int) and not isinstance(stated, bool) else None,
        number=int(trajectory.id) if trajectory.id and trajectory.id.isdecimal() else number,
        reward=reward,
    )
    reflection = trajectory.metadata.get("reflection")
    if isinstance(reflection, str) and reflection.strip():
        attempt.comments[trajectory.agent or "agent", "agent"] = [(-1, reflection.strip())]
    return attempt


def _following(attempts: Any) -> dict[str, str]:
    """By key, the key of the next attempt."""
    groups: dict[tuple[str, str], list[_Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(attempt.group, []).append(attempt)
    found = {}
    for group in groups.values():
        stated = [each.attempt for each in group if each.attempt is not None]
        if len(stated) == len(group) == len(set(stated)):
            ordered = sorted(group, key=lambda each: each.attempt or 0)
        else:
            ordered = sorted(group, key=lambda each: each.number)
        found.update({each.key: later.key for each, later in pairwise(ordered)})
    return found


def _key(trajectory: Trajectory) -> str:
    return trajectory.id or trajectory.content_hash
