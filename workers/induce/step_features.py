"""What the agent did in each step of a trajectory, as vectors that comments are compared with.

Trajectories stream through and leave little behind: of each agent step 2 * DIMENSIONS + FLAGS numbers, which represent
the action, the observation that followed, and facts such as whether it failed (FLAGS).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.schema import Step, Trajectory
from workers.schema.patterns import TextPattern

FloatArray = NDArray[np.float32]
DoubleArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Encode = Callable[[Sequence[str]], FloatArray]
DIMENSIONS = 64  # principal components kept of actions, and of observations
FLAGS = ("acts", "failed", "last", "place", "repeats")
PROJECTION_STEPS = 4000  # that the components are taken from
_WORD = re.compile(r"[^\W_]{2,}")
_FAILED = TextPattern(
    r"(?i)\b(?:error|exception|traceback|failed|failure|not found|invalid|denied|exitcode: [1-9])"
)
_MAX_CHARACTERS = 4000  # read of an action, and of an observation
_MAX_SUMMARY = 200  # characters


@dataclass(frozen=True, slots=True)
class TrajectoryFeatures:
    """A trajectory as comments are compared with it.

    steps: `step` index of each agent step. actions, observations: [steps, hidden], of unit length.
    flags: [steps, FLAGS].
    """

    steps: list[int]
    actions: FloatArray
    observations: FloatArray
    action_words: list[set[str]]
    observation_words: list[set[str]]
    speakers: list[str]
    failed: DoubleArray
    flags: DoubleArray
    behaviours: list[str]


@dataclass(frozen=True, slots=True)
class StepVectors:
    """Agent steps of many trajectories. actions, observations: [steps, DIMENSIONS], of unit length.

    flags: [steps, FLAGS], scaled. trajectory: index of each step's trajectory. number: its `step`.
    """

    actions: FloatArray
    observations: FloatArray
    flags: FloatArray
    trajectory: IndexArray
    number: IndexArray


class Projection:
    """Features of steps to few numbers: principal components of actions and of observations, and scaled flags."""

    def __init__(self, given: Sequence[TrajectoryFeatures]) -> None:
        flags = np.concatenate([features.flags for features in given] or [np.zeros((1, len(FLAGS)))])
        if not len(flags):
            flags = np.zeros((1, len(FLAGS)))
        self._flag_mean = flags.mean(0).astype(np.float32)
        self._flag_scale = np.maximum(flags.std(0), 1e-6).astype(np.float32)
        self._actions = _principal_axes([features.actions for features in given])
        self._observations = _principal_axes([features.observations for features in given])

    def __call__(self, features: TrajectoryFeatures, trajectory: int = 0) -> StepVectors:
        """The steps of one trajectory, of which the index is given."""
        flags = (features.flags - self._flag_mean) / self._flag_scale
        return StepVectors(
            actions=_project(features.actions, *self._actions),
            observations=_project(features.observations, *self._observations),
            flags=flags.astype(np.float32).reshape(len(features.steps), len(FLAGS)),
            trajectory=np.full(len(features.steps), trajectory, dtype=np.intp),
            number=np.array(features.steps, dtype=np.intp),
        )


def extract_features(trajectory: Trajectory, encode: Encode) -> TrajectoryFeatures:
    numbers = trajectory.agent_steps
    steps = [trajectory.steps[number] for number in numbers]
    actions, observations = (
        [_action_text(step) for step in steps],
        [_observation_text(step) for step in steps],
    )
    vectors = encode([*actions, *observations])
    failed = np.array([float(bool(_FAILED.search(text))) for text in observations])
    return TrajectoryFeatures(
        steps=numbers,
        actions=vectors[: len(steps)],
        observations=vectors[len(steps) :],
        action_words=[split_words(text) for text in actions],
        observation_words=[split_words(text) for text in observations],
        speakers=[step.speaker or "" for step in steps],
        failed=failed,
        flags=_flags(steps, failed),
        behaviours=[summarize_action(step) for step in steps],
    )


def summarize_action(step: Step) -> str:
    """What the agent did in a step, in a line: the calls, or else its text."""
    calls = "; ".join(f"{call.name}({call.arguments_text})" for call in step.tool_calls)
    line = " ".join((calls or step.text or step.reasoning or "").split())
    return line if len(line) <= _MAX_SUMMARY else f"{line[: _MAX_SUMMARY - 1]}…"


def split_words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows of length one; rows of zeros stay."""
    found: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found


def _principal_axes(rows: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Mean and axes: [hidden], [DIMENSIONS or fewer, hidden]."""
    filled = [some for some in rows if some.size]
    mean = np.concatenate(filled).mean(0) if filled else np.zeros(DIMENSIONS)
    known = np.concatenate(filled)[:PROJECTION_STEPS] - mean if filled else np.zeros((1, DIMENSIONS))
    axes = np.linalg.svd(known, full_matrices=False)[2][:DIMENSIONS]
    return np.ascontiguousarray(mean, dtype=np.float32), np.ascontiguousarray(axes, dtype=np.float32)


def _project(rows: FloatArray, mean: FloatArray, axes: FloatArray) -> FloatArray:
    out = np.zeros((len(rows), DIMENSIONS), dtype=np.float32)
    if rows.size:
        found = (rows - mean) @ axes.T
        out[:, : found.shape[1]] = unit_rows(found.astype(np.float32))
    return out


def _flags(steps: Sequence[Step], failed: DoubleArray) -> DoubleArray:
    """[steps, FLAGS]: calls a tool; the observation is a failure; is the last; how late, 0 to 1; repeats a call."""
    out, before = np.zeros((len(steps), len(FLAGS))), set[tuple[tuple[str, str], ...]]()
    for place, step in enumerate(steps):
        calls = tuple((call.name, call.arguments_text) for call in step.tool_calls)
        last = place == len(steps) - 1
        late = place / max(len(steps) - 1, 1)
        out[place] = (bool(calls), failed[place], last, late, bool(calls) and calls in before)
        before.add(calls)
    return out


def _action_text(step: Step) -> str:
    calls = [f"{call.name} {call.arguments_text}" for call in step.tool_calls]
    return "\n".join([step.text, step.reasoning or "", *calls]).strip()[:_MAX_CHARACTERS]


def _observation_text(step: Step) -> str:
    texts = [part.text for result in step.observation for part in result.content if part.text]
    return "\n".join(texts)[:_MAX_CHARACTERS]
