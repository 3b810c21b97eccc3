"""What corrections of steps become: pairs of prefixes to learn from, and revised trajectories.

A correction is what an annotator says the agent should have done at a step. The prefix that ends with it is preferred
to the prefix that ends with the step as it was. Spliced in at the first error, with everything after it dropped, it is
a revised trajectory: as Agent-R (arXiv 2501.11425), section 2.2, whose good ends are corrections of people here.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from workers.schema.records import (
    FeedbackRecord,
    Part,
    PreferenceRecord,
    Step,
    StepCorrection,
    StepLabelRecord,
    Trajectory,
)

Correction = str | StepCorrection
# Why a correction is not used, in words that follow a count.
EQUAL = "that say what the step was"
NO_STEP = "of steps that are not in the trajectory"
REPEATED = "that another record makes too"
WEIGHTLESS = "of weight 0"


@dataclass(frozen=True, slots=True)
class StepPair:
    """comparison: the corrected prefix is `a`, and chosen. source: the record with the correction, of `agent_step`."""

    comparison: PreferenceRecord
    source: StepLabelRecord
    agent_step: int


@dataclass(slots=True)
class StepPairs:
    """skipped: corrections of which there is no pair, by reason."""

    pairs: list[StepPair] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def correction_text(correction: Correction) -> str:
    """In one text: what the agent says, then its call as `name(arguments)`."""
    if isinstance(correction, str):
        return correction
    calls = [
        f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in correction.tool_calls
    ]
    return "\n".join([*([correction.text] if correction.text else []), *calls])


def corrected_step(step: Step, correction: Correction) -> Step:
    """The step as it should have been, by the same speaker: nothing is known of its reasoning and its results."""
    text = correction if isinstance(correction, str) else correction.text
    calls = () if isinstance(correction, str) else correction.tool_calls
    message = (Part(text=text),) if text else ()
    return replace(step, message=message, reasoning=None, tool_calls=calls, observation=())


def corrected_prefixes(
    record: StepLabelRecord, *, keeps_reasoning: bool = False
) -> Iterator[tuple[int, Trajectory, Trajectory]]:
    """Of each correction the agent step, the prefix that ends with it, and the prefix that ends with the step.

    What the step was answered is left out of both, since no one knows what the correction would have been answered;
    so is its reasoning, which no correction has, unless `keeps_reasoning`.
    """
    agent = record.trajectory.agent_steps
    for number, correction in sorted(record.corrections.items()):
        if number < len(agent):
            before, step = record.trajectory.steps[: agent[number]], record.trajectory.steps[agent[number]]
            reasoning = step.reasoning if keeps_reasoning else None
            original = replace(step, reasoning=reasoning, observation=())
            yield (
                number,
                _prefix(record.trajectory, [*before, corrected_step(step, correction)]),
                _prefix(record.trajectory, [*before, original]),
            )


def step_pairs(records: Iterable[FeedbackRecord], *, weight: float) -> StepPairs:
    """The pairs that the corrections in these records make; weight: of a pair of a record of weight 1."""
    found = StepPairs()
    found.pairs = [*iterate_step_pairs(records, weight=weight, skipped=found.skipped)]
    found.skipped = +found.skipped
    return found


def iterate_step_pairs(
    records: Iterable[FeedbackRecord], *, weight: float, skipped: Counter[str]
) -> Iterator[StepPair]:
    """The same one by one. skipped: counts the corrections without a pair, by reason."""
    seen = set[tuple[str, str]]()
    for record in records:
        if not isinstance(record, StepLabelRecord) or not record.corrections:
            continue
        if record.weight <= 0:
            skipped[WEIGHTLESS] += len(record.corrections)
            continue
        missing = len(record.corrections)
        for number, corrected, original in corrected_prefixes(record):
            missing -= 1
            key = corrected.content_hash, original.content_hash
            if key[0] == key[1]:
                skipped[EQUAL] += 1
            elif key in seen:
                skipped[REPEATED] += 1
            else:
                seen.add(key)
                yield StepPair(_comparison(record, number, corrected, original, weight), record, number)
        skipped[NO_STEP] += missing


def first_error(record: StepLabelRecord) -> int | None:
    """The agent step that was marked as the first error, or the earliest that is labelled bad."""
    if record.has_first_error:
        return record.first_error
    return min((step for step, label in record.labels.items() if label == "bad"), default=None)


def revised_trajectory(record: StepLabelRecord) -> Trajectory | None:
    """The trajectory up to its first error, with the correction in its place; None without a correction of that."""
    error = first_error(record)
    for number, corrected, original in corrected_prefixes(record):
        if number == error and corrected.content_hash != original.content_hash:
            return corrected
    return None


def _comparison(
    record: StepLabelRecord, number: int, corrected: Trajectory, original: Trajectory, weight: float
) -> PreferenceRecord:
    return PreferenceRecord(
        a=corrected,
        b=original,
        choice="a",
        annotator=record.annotator,
        origin=record.origin,
        item=f"{record.item or record.trajectory.task.id}/correction of step {number}",
        weight=record.weight * weight,
    )


def _prefix(trajectory: Trajectory, steps: Sequence[Step]) -> Trajectory:
    """With its metadata, which states the tools; the outcome was of the whole trajectory."""
    return Trajectory(
        steps=tuple(steps),
        task=trajectory.task,
        agent=trajectory.agent,
        agent_version=trajectory.agent_version,
        metadata=trajectory.metadata,
        conditions=trajectory.conditions,
    )
