"""What people said, tied to what agents did: the arrays that metrics are induced from.

Trajectories stream through and leave little behind: of each agent step 2 * DIMENSIONS + FLAGS numbers, which say what
was done, what came back, and how (workers.induce.grounding.FLAGS); of each point its embedding, and what was done where
it is meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.induce.embedding import Embedder, Vectors
from workers.induce.grounding import FLAGS, Seen, ground, look
from workers.induce.meta import Aspect
from workers.induce.points import points_of
from workers.induce.signs import Signs, sign_of
from workers.schema import Trajectory

DIMENSIONS = 64  # principal components kept of what was done, and of what came back
_FIT_ON = 4000  # steps that the components are taken from
Numbers = NDArray[np.float32]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """steps: `step` indices, inclusive, that it was anchored to. sign: as its annotator said, or None."""

    id: str
    trajectory: str
    text: str
    sign: int | None = None
    steps: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """What one comment says once. sign: 1, -1, or 0 for neither."""

    comment: Comment
    text: str
    sign: int


@dataclass(frozen=True, slots=True)
class Steps:
    """Agent steps of many trajectories. done, seen: [steps, DIMENSIONS], of unit length; flags: [steps, FLAGS], scaled.

    of: the place of each step's trajectory. index: its `step`.
    """

    done: Numbers
    seen: Numbers
    flags: Numbers
    of: Places
    index: Places


@dataclass(frozen=True, slots=True)
class Evidence:
    """aspects: n. text: [n, hidden]. done, seen, flags: [n, ...], as of Steps, of the steps that may be meant.

    of: [n], the place of each aspect's trajectory. step: [n], the row of `steps` that is most likely meant, or -1.
    names, tasks: of the trajectories.
    """

    aspects: list[Aspect]
    text: Vectors
    done: Numbers
    seen: Numbers
    flags: Numbers
    of: Places
    step: Places
    steps: Steps
    names: list[str]
    tasks: list[str]


def read_points(comments: Sequence[Comment], encode: Embedder) -> tuple[list[Point], Vectors]:
    """All points of all comments with their embeddings. A sign given to a comment of one point is kept as it is."""
    taken = [(comment, points_of(comment.text)) for comment in comments]
    flat = [(comment, text, len(texts) == 1) for comment, texts in taken for text in texts]
    vectors = encode([text for _, text, _ in flat])
    if not flat:
        return [], vectors
    known = [place for place, (comment, _, alone) in enumerate(flat) if alone and comment.sign]
    signs = Signs(encode, vectors[known], [flat[place][0].sign or 0 for place in known])
    praise = signs(vectors, [comment.sign for comment, _, _ in flat])
    points = [
        Point(comment, text, comment.sign if alone and comment.sign else sign_of(float(chance)))
        for (comment, text, alone), chance in zip(flat, praise, strict=True)
    ]
    return points, vectors


class Gathering:
    """Takes in trajectories one by one, then gives the evidence. points: those with a sign, vectors: of them."""

    def __init__(self, points: Sequence[Point], vectors: Vectors, encode: Embedder) -> None:
        self._encode = encode
        self._points, self._vectors = points, vectors
        self._of: dict[str, list[int]] = {}
        for place, point in enumerate(points):
            self._of.setdefault(point.comment.trajectory, []).append(place)
        self._projection: Projection | None = None
        self._waiting: list[tuple[str, str, Seen]] = []
        self._names: list[str] = []
        self._tasks: list[str] = []
        self._rows: list[tuple[Numbers, Numbers, Numbers]] = []
        self._counts: list[int] = []
        self._index: list[int] = []
        self._meant: list[tuple[int, Aspect, int, int, Numbers, Numbers, Numbers]] = []

    @property
    def projection(self) -> "Projection":
        assert self._projection is not None, "known once the evidence was asked for"
        return self._projection

    def add(self, name: str, trajectory: Trajectory) -> None:
        self._waiting.append((name, trajectory.task.id, look(trajectory, self._encode)))
        if sum(len(seen.steps) for *_, seen in self._waiting) >= _FIT_ON or self._projection is not None:
            self._take()

    def evidence(self) -> Evidence:
        self._take()
        width = len(FLAGS)
        order = sorted(range(len(self._meant)), key=lambda place: self._meant[place][0])
        meant = [self._meant[place] for place in order]
        kept = [one[0] for one in meant]
        done, seen, flags = (
            np.concatenate([rows[side] for rows in self._rows])
            if self._rows
            else np.zeros((0, size), np.float32)
            for side, size in enumerate((DIMENSIONS, DIMENSIONS, width))
        )
        steps = Steps(
            done=done,
            seen=seen,
            flags=flags,
            of=np.repeat(np.arange(len(self._counts)), self._counts),
            index=np.array(self._index, dtype=np.intp),
        )
        return Evidence(
            aspects=[one[1] for one in meant],
            text=self._vectors[kept],
            done=np.array([one[4] for one in meant], dtype=np.float32).reshape(len(meant), DIMENSIONS),
            seen=np.array([one[5] for one in meant], dtype=np.float32).reshape(len(meant), DIMENSIONS),
            flags=np.array([one[6] for one in meant], dtype=np.float32).reshape(len(meant), width),
            of=np.array([one[2] for one in meant], dtype=np.intp),
            step=np.array([one[3] for one in meant], dtype=np.intp),
            steps=steps,
            names=self._names,
            tasks=self._tasks,
        )

    def _take(self) -> None:
        if self._projection is None:
            self._projection = Projection.fit([seen for *_, seen in self._waiting])
        for name, task, seen in self._waiting:
            self._tie(name, task, seen, self._projection(seen))
        self._waiting = []

    def _tie(self, name: str, task: str, seen: Seen, rows: tuple[Numbers, Numbers, Numbers]) -> None:
        number, first = len(self._names), sum(self._counts)
        self._names.append(name)
        self._tasks.append(task)
        self._rows.append(rows)
        self._counts.append(len(seen.steps))
        self._index += seen.steps
        for place in self._of.get(name, ()):
            point, step, behaviour, row = self._points[place], None, "", -1
            shares = np.zeros((1, len(seen.steps)))
            if seen.steps:
                shares = ground(
                    [point.text], [point.sign], seen, self._vectors[[place]], within=point.comment.steps
                )
                best = int(shares[0].argmax())
                step, behaviour, row = seen.steps[best], seen.behaviours[best], first + best
            aspect = Aspect(
                trajectory=name,
                behaviour=behaviour,
                feedback=point.text,
                sign=point.sign,
                step=step,
                chance=float(shares.max()) if seen.steps else None,
                comment=point.comment.id,
            )
            done, back, flags = (shares[0].astype(np.float32) @ side for side in rows)
            self._meant.append((place, aspect, number, row, done, back, flags))


class Projection:
    """Steps to few numbers: principal components of what was done and of what came back, and scaled flags."""

    def __init__(self, parts: dict[str, Numbers]) -> None:
        """parts: as `fit` makes them; they are kept with the metrics, so that other trajectories are seen alike."""
        self.parts = parts

    @classmethod
    def fit(cls, given: Sequence[Seen]) -> "Projection":
        flags = np.concatenate([one.flags for one in given] or [np.zeros((1, len(FLAGS)))])
        if not len(flags):
            flags = np.zeros((1, len(FLAGS)))
        parts = {"flags.mean": flags.mean(0), "flags.scale": np.maximum(flags.std(0), 1e-6)}
        for side, rows in (("done", [one.did for one in given]), ("seen", [one.saw for one in given])):
            there = [one for one in rows if one.size]
            mean = np.concatenate(there).mean(0) if there else np.zeros(DIMENSIONS)
            known = np.concatenate(there)[:_FIT_ON] - mean if there else np.zeros((1, DIMENSIONS))
            axes = np.linalg.svd(known, full_matrices=False)[2][:DIMENSIONS]
            parts |= {f"{side}.mean": mean, f"{side}.axes": axes}
        return cls({name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items()})

    def __call__(self, seen: Seen) -> tuple[Numbers, Numbers, Numbers]:
        """done, seen and flags of each step."""
        flags = (seen.flags - self.parts["flags.mean"]) / self.parts["flags.scale"]
        return (
            self._side(seen.did, "done"),
            self._side(seen.saw, "seen"),
            flags.astype(np.float32).reshape(len(seen.steps), len(FLAGS)),
        )

    def _side(self, rows: Vectors, side: str) -> Numbers:
        out = np.zeros((len(rows), DIMENSIONS), dtype=np.float32)
        if rows.size:
            found = (rows - self.parts[f"{side}.mean"]) @ self.parts[f"{side}.axes"].T
            out[:, : found.shape[1]] = unit(found.astype(np.float32))
        return out


def unit(rows: Numbers) -> Numbers:
    """Rows of length one; rows of nothing stay."""
    found: Numbers = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found
