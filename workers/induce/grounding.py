"""Step 2 of an induction: each point is tied to the agent step it is about.

Each step is scored by what it has in common with the comment: the meaning of the action, and of the observation that
followed (cosine of embeddings), rare words of both (weighted by how few steps of the trajectory contain them), the
speaker's name, a tool that failed where the comment blames, and how early it is. The weights were fitted by conditional
logit (McFadden 1974) on the labelled steps of AgentRx and Who&When together; docs/metrics.md reports what they find on
trajectories that were left out.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.induce.comment_points import CommentPoint
from workers.induce.induction_files import Aspect
from workers.induce.step_features import (
    DIMENSIONS,
    FLAGS,
    PROJECTION_STEPS,
    DoubleArray,
    Encode,
    FloatArray,
    IndexArray,
    Projection,
    StepVectors,
    TrajectoryFeatures,
    extract_features,
    split_words,
)
from workers.schema import Trajectory

FEATURES = (
    "action",
    "observation",
    "action words",
    "observation words",
    "speaker",
    "failed",
    "early",
)
WEIGHTS = (0.55, 0.33, 0.85, 1.43, 1.82, 0.62, 0.92)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Points tied to agent steps: the arrays that metrics are induced from. aspects: n.

    text: [n, hidden]. actions, observations, flags: [n, ...], as of StepVectors, weighted by how likely each step is.
    trajectory: [n], index of each aspect's trajectory. step: [n], the row of `steps` that is most likely, or -1.
    names, tasks: of the trajectories.
    """

    aspects: list[Aspect]
    text: FloatArray
    actions: FloatArray
    observations: FloatArray
    flags: FloatArray
    trajectory: IndexArray
    step: IndexArray
    steps: StepVectors
    names: list[str]
    tasks: list[str]


@dataclass(frozen=True, slots=True)
class _GroundedPoint:
    """order: of the point among all points. row: of the step among all steps, or -1."""

    order: int
    aspect: Aspect
    trajectory: int
    row: int
    action: FloatArray
    observation: FloatArray
    flags: FloatArray


def gather_evidence(
    points: Sequence[CommentPoint],
    vectors: FloatArray,
    trajectories: Iterable[tuple[str, Trajectory]],
    encode: Encode,
) -> tuple[Evidence, Projection]:
    """Evidence of the points that praise or blame, and how steps of other trajectories are projected.

    vectors: [points, hidden]. trajectories: by the name that comments have for them; each is read once and let go.
    """
    gathering = _Gathering(points, vectors)
    for name, trajectory in trajectories:
        gathering.add(name, trajectory.task.id, extract_features(trajectory, encode))
    return gathering.finish()


class _Gathering:
    """Takes trajectories one by one. The first wait until there are enough steps to fit the projection on."""

    def __init__(self, points: Sequence[CommentPoint], vectors: FloatArray) -> None:
        self._points, self._vectors = points, vectors
        self._by_trajectory: dict[str, list[int]] = {}
        for order, point in enumerate(points):
            if point.sign:
                self._by_trajectory.setdefault(point.comment.trajectory, []).append(order)
        self._projection: Projection | None = None
        self._waiting: list[tuple[str, str, TrajectoryFeatures]] = []
        self._names: list[str] = []
        self._tasks: list[str] = []
        self._steps: list[StepVectors] = []
        self._step_count = 0
        self._grounded: list[_GroundedPoint] = []

    def add(self, name: str, task: str, features: TrajectoryFeatures) -> None:
        self._waiting.append((name, task, features))
        steps = sum(len(features.steps) for *_, features in self._waiting)
        if steps >= PROJECTION_STEPS or self._projection is not None:
            self._ground_waiting()

    def finish(self) -> tuple[Evidence, Projection]:
        projection = self._ground_waiting()
        grounded = sorted(self._grounded, key=lambda point: point.order)

        def stack(rows: list[FloatArray], width: int) -> FloatArray:
            return np.array(rows, dtype=np.float32).reshape(len(grounded), width)

        evidence = Evidence(
            aspects=[point.aspect for point in grounded],
            text=self._vectors[[point.order for point in grounded]],
            actions=stack([point.action for point in grounded], DIMENSIONS),
            observations=stack([point.observation for point in grounded], DIMENSIONS),
            flags=stack([point.flags for point in grounded], len(FLAGS)),
            trajectory=np.array([point.trajectory for point in grounded], dtype=np.intp),
            step=np.array([point.row for point in grounded], dtype=np.intp),
            steps=_concatenate(self._steps),
            names=self._names,
            tasks=self._tasks,
        )
        return evidence, projection

    def _ground_waiting(self) -> Projection:
        if self._projection is None:
            self._projection = Projection([features for *_, features in self._waiting])
        for name, task, features in self._waiting:
            self._ground(name, features, self._projection(features, len(self._names)))
            self._names.append(name)
            self._tasks.append(task)
        self._waiting = []
        return self._projection

    def _ground(self, name: str, features: TrajectoryFeatures, steps: StepVectors) -> None:
        for order in self._by_trajectory.get(name, ()):
            point, step, behaviour, row = self._points[order], None, "", -1
            shares = np.zeros((1, len(features.steps)))
            if features.steps:
                shares = ground_points(
                    [point.text], [point.sign], features, self._vectors[[order]], within=point.comment.steps
                )
                best = int(shares[0].argmax())
                step, behaviour = features.steps[best], features.behaviours[best]
                row = self._step_count + best
            aspect = Aspect(
                trajectory=name,
                behaviour=behaviour,
                feedback=point.text,
                sign=point.sign,
                step=step,
                chance=float(shares.max()) if features.steps else None,
                comment=point.comment.id,
            )
            weights = shares[0].astype(np.float32)
            sides = (weights @ side for side in (steps.actions, steps.observations, steps.flags))
            self._grounded.append(_GroundedPoint(order, aspect, len(self._names), row, *sides))
        self._steps.append(steps)
        self._step_count += len(features.steps)


def _concatenate(steps: Sequence[StepVectors]) -> StepVectors:
    if not steps:
        none = np.zeros(0, np.intp)
        empty = np.zeros((0, DIMENSIONS), np.float32)
        return StepVectors(empty, empty, np.zeros((0, len(FLAGS)), np.float32), none, none)
    return StepVectors(
        actions=np.concatenate([some.actions for some in steps]),
        observations=np.concatenate([some.observations for some in steps]),
        flags=np.concatenate([some.flags for some in steps]),
        trajectory=np.concatenate([some.trajectory for some in steps]),
        number=np.concatenate([some.number for some in steps]),
    )


def ground_points(
    points: Sequence[str],
    signs: Sequence[int],
    features: TrajectoryFeatures,
    vectors: FloatArray,
    *,
    within: tuple[int, int] | None = None,
) -> DoubleArray:
    """[points, agent steps]: the probability of each step that the point is about it. vectors: of the points.

    within: `step` indices, inclusive, that the comment was anchored to: no others come into question, unless the
    agent took none of them.
    """
    scores = grounding_features(points, signs, features, vectors) @ np.array(WEIGHTS)
    if within is not None:
        inside = np.array([within[0] <= step <= within[1] for step in features.steps])
        if inside.any():
            scores = np.where(inside, scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True)) if len(points) else scores
    found: DoubleArray = shares / shares.sum(axis=1, keepdims=True) if len(points) else shares
    return found


def grounding_features(
    points: Sequence[str], signs: Sequence[int], features: TrajectoryFeatures, vectors: FloatArray
) -> DoubleArray:
    """[points, agent steps, FEATURES]. vectors: of the points."""
    out = np.zeros((len(points), len(features.steps), len(FEATURES)))
    out[:, :, 0], out[:, :, 1] = vectors @ features.actions.T, vectors @ features.observations.T
    rare_actions, rare_observations = _rarity(features.action_words), _rarity(features.observation_words)
    speaking = {name: name.casefold().replace("_", " ") for name in set(features.speakers) if name}
    early = np.linspace(1.0, 0.0, len(features.steps)) if len(features.steps) > 1 else np.ones(1)
    for row, (point, sign) in enumerate(zip(points, signs, strict=True)):
        words, plain = split_words(point), point.casefold().replace("_", " ")
        out[row, :, 2] = [_overlap(words, there, rare_actions) for there in features.action_words]
        out[row, :, 3] = [_overlap(words, there, rare_observations) for there in features.observation_words]
        out[row, :, 4] = [float(bool(name) and speaking[name] in plain) for name in features.speakers]
        out[row, :, 5] = features.failed * (sign < 0)
        out[row, :, 6] = early
    return out


def _rarity(by_step: Sequence[set[str]]) -> dict[str, float]:
    """ln((n + 1) / (steps that contain it)) of each word."""
    counts = Counter(word for words in by_step for word in words)
    return {word: math.log((len(by_step) + 1) / count) for word, count in counts.items()}


def _overlap(words: set[str], there: set[str], rarity: dict[str, float]) -> float:
    """The weight of the words that both have, by the square root of how many words the comment has."""
    return sum(rarity[word] for word in words & there) / math.sqrt(max(len(words), 1))
