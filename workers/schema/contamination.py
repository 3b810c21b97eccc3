"""Train/test contamination: tasks on both sides, and near-copies of trajectories."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.schema.records import FeedbackRecord, Trajectory, record_trajectories

_HASHES = 128
# Of 8 hashes each: pairs with a similarity of 0.8 are found with a chance of 94 %, of 0.5 with 6 %.
_BANDS = 16
_SIMILAR = 0.8
_WORDS = 5  # in a shingle
_SHOWN = 20
_PROMPT_WORDS = 2000  # of a prompt, the first: a task keeps four bytes for each
_TEMPLATE_TASKS, _TEMPLATE_SHARE = 3, 0.1  # of training tasks: more with a shingle make it part of a template
Signature = NDArray[np.uint64]
Shingles = NDArray[np.uint32]


def find_contamination(train: Iterable[FeedbackRecord], held_out: Iterable[FeedbackRecord]) -> dict[str, Any]:
    """{tasks: ids on both sides, near_copies: n, of: held-out trajectories, pairs: [{train, held_out, similarity}],
    near_tasks: n, of_tasks: held-out tasks, task_pairs: as pairs}.

    Near-copies: estimated Jaccard similarity of five-word shingles of the agent's messages and actions of at least 0.8
    (MinHash, Broder 1997; found by banding, Indyk & Motwani 1998). near_tasks: the same of the first 2,000 words that
    the user wrote before the agent's first step, without what many training tasks have, of held-out tasks that are not
    in `tasks`. Texts of fewer than five words are not counted: short answers are similar by chance.
    """
    return compare_splits(_of_records(train), _of_records(held_out))


def compare_splits(ours: "SplitSignatures", theirs: "SplitSignatures") -> dict[str, Any]:
    """`find_contamination`, of the signatures of the training records and of the held-out ones."""
    tasks = ours.tasks & theirs.tasks
    pairs = _near_pairs(ours.trajectories, theirs.trajectories)
    template = ours.template()
    other = {task: found for task, found in theirs.prompts(template).items() if task not in tasks}
    task_pairs = _near_pairs(ours.prompts(template), other)
    return {
        "tasks": sorted(tasks),
        "near_copies": len(pairs),
        "of": len(theirs.trajectories),
        "pairs": pairs[:_SHOWN],
        "near_tasks": len(task_pairs),
        "of_tasks": len(theirs.tasks),
        "task_pairs": task_pairs[:_SHOWN],
    }


def _near_pairs(
    ours: dict[str, Signature | None], theirs: dict[str, Signature | None]
) -> list[dict[str, Any]]:
    """Of `theirs` those with a near-copy in `ours`, with the most similar one; the most similar pair first."""
    signatures = {key: found for key, found in ours.items() if found is not None}
    bands: dict[tuple[int, bytes], list[str]] = {}
    for key, found in signatures.items():
        for place, band in enumerate(np.split(found, _BANDS)):
            bands.setdefault((place, band.tobytes()), []).append(key)
    pairs: list[dict[str, Any]] = []
    for key, mine in theirs.items():
        if mine is None:
            continue
        near = {
            name
            for place, band in enumerate(np.split(mine, _BANDS))
            for name in bands.get((place, band.tobytes()), ())
        }
        best = max(((float((signatures[name] == mine).mean()), name) for name in near), default=(0.0, ""))
        if best[0] >= _SIMILAR:
            pairs.append({"train": best[1], "held_out": key, "similarity": best[0]})
    pairs.sort(key=lambda pair: -pair["similarity"])
    return pairs


def signature(text: str) -> Signature | None:
    """[128]: the smallest value of each of as many random hashes over the text's shingles; None for too few words."""
    values = _shingle_values(text.split())
    return _smallest(values) if len(values) else None


def _shingle_values(words: Sequence[str]) -> Shingles:
    """A number for each distinct shingle."""
    shingles = {" ".join(words[start : start + _WORDS]) for start in range(len(words) - _WORDS + 1)}
    numbers = (
        int.from_bytes(hashlib.blake2b(shingle.encode(), digest_size=4).digest(), "big")
        for shingle in shingles
    )
    return np.fromiter(numbers, dtype=np.uint32, count=len(shingles))


def _smallest(values: Shingles) -> Signature:
    # Multiply-shift (Dietzfelbinger et al. 1997): the product wraps at 2^64, its upper half is the hash.
    smallest: Signature = (
        values[:, None].astype(np.uint64) * _FACTORS[None] + _TERMS[None] >> np.uint64(32)
    ).min(0)
    return smallest


def agent_text(trajectory: Trajectory) -> str:
    """The agent's messages, reasoning and calls; its inputs may be the same in every trajectory."""
    texts = []
    for step in trajectory.steps:
        if step.source == "agent":
            calls = (f"{call.name} {call.arguments_text}" for call in step.tool_calls)
            texts += [step.reasoning or "", step.text, *calls]
    return " ".join(texts)


def prompt_text(trajectory: Trajectory) -> str:
    """What the user wrote before the agent's first step. System messages may be the same in every task."""
    texts = []
    for step in trajectory.steps:
        if step.source == "agent":
            break
        if step.source == "user":
            texts.append(step.text)
    return " ".join(texts)


class TrajectorySignatures:
    """Of trajectories as they pass, each calculated once, to compare splits of them later."""

    def __init__(self) -> None:
        self._signatures: dict[str, Signature | None] = {}
        self._tasks: dict[str, str] = {}
        self._shingles: dict[
            str, Shingles
        ] = {}  # of prompts, by content hash: of few trajectories of each task
        self._known: set[tuple[str, bool]] = set()

    def add(self, trajectory: Trajectory, *, in_test: bool = True) -> None:
        """in_test: whether the record may be in a test split; the prompt of a task is that of its first trajectory
        there, too."""
        key, task = trajectory.content_hash, trajectory.task.id
        if key not in self._signatures:
            self._signatures[key], self._tasks[key] = signature(agent_text(trajectory)), task
        for of in {False, in_test}:
            if (task, of) not in self._known:
                self._known.add((task, of))
                if key not in self._shingles:
                    self._shingles[key] = prompt_shingles(trajectory)

    def of_split(self, keys: Iterable[str]) -> "SplitSignatures":
        """keys: content hashes, in the order of the records."""
        found = SplitSignatures()
        for key in keys:
            found.trajectories[key] = self._signatures[key]
            if self._tasks[key] not in found.shingles:
                found.shingles[self._tasks[key]] = self._shingles[key]
        return found


def prompt_shingles(trajectory: Trajectory) -> Shingles:
    return _shingle_values(prompt_text(trajectory).split(None, _PROMPT_WORDS)[:_PROMPT_WORDS])


def _of_records(records: Iterable[FeedbackRecord]) -> "SplitSignatures":
    signatures, keys = TrajectorySignatures(), dict[str, None]()
    for trajectory in (side for record in records for side in record_trajectories(record)):
        signatures.add(trajectory)
        keys[trajectory.content_hash] = None
    return signatures.of_split(keys)


class SplitSignatures:
    """trajectories: by content hash, a kilobyte each, None for too few words; shingles: of the prompts by task, of its
    first trajectory."""

    def __init__(self) -> None:
        self.trajectories: dict[str, Signature | None] = {}
        self.shingles: dict[str, Shingles] = {}

    @property
    def tasks(self) -> set[str]:
        return set(self.shingles)

    def template(self) -> Shingles:
        """Shingles that are in the prompts of many tasks: instructions or a policy that say nothing of a single one."""
        if not self.shingles:
            return np.array([], dtype=np.uint32)
        found, counts = np.unique(np.concatenate(list(self.shingles.values())), return_counts=True)
        template: Shingles = found[counts > max(_TEMPLATE_TASKS, _TEMPLATE_SHARE * len(self.shingles))]
        return template

    def prompts(self, template: Shingles) -> dict[str, Signature | None]:
        """By task, the signature of its prompt without the template; None where nothing is left."""
        own = {task: np.setdiff1d(values, template) for task, values in self.shingles.items()}
        return {task: _smallest(values) if len(values) else None for task, values in own.items()}


_DICE = np.random.default_rng(0)
_FACTORS = _DICE.integers(0, 1 << 63, size=_HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_TERMS = _DICE.integers(0, 1 << 63, size=_HASHES, dtype=np.uint64)
