"""Train/test contamination: tasks on both sides, and near-copies of trajectories."""

import hashlib
from collections.abc import Iterable
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
Signature = NDArray[np.uint64]


def find_contamination(train: Iterable[FeedbackRecord], held_out: Iterable[FeedbackRecord]) -> dict[str, Any]:
    """{tasks: ids on both sides, near_copies: n, of: held-out trajectories, pairs: [{train, held_out, similarity}]}.

    Near-copies: estimated Jaccard similarity of five-word shingles of the agent's messages and actions of at least 0.8
    (MinHash, Broder 1997; found by banding, Indyk & Motwani 1998). Texts of fewer than five words
    are not counted: short answers are similar by chance.
    """
    ours, theirs = _signed(train), _signed(held_out)
    tasks = {task for task, _ in ours.values()} & {task for task, _ in theirs.values()}
    signatures = {key: found for key, (_, found) in ours.items() if found is not None}
    bands: dict[tuple[int, bytes], list[str]] = {}
    for key, found in signatures.items():
        for place, band in enumerate(np.split(found, _BANDS)):
            bands.setdefault((place, band.tobytes()), []).append(key)
    pairs: list[dict[str, Any]] = []
    for key, (_, mine) in theirs.items():
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
    return {"tasks": sorted(tasks), "near_copies": len(pairs), "of": len(theirs), "pairs": pairs[:_SHOWN]}


def signature(text: str) -> Signature | None:
    """[128]: the smallest value of each of as many random hashes over the text's shingles; None for too few words."""
    words = text.split()
    if len(words) < _WORDS:
        return None
    shingles = {" ".join(words[start : start + _WORDS]) for start in range(len(words) - _WORDS + 1)}
    values = np.array(
        [
            int.from_bytes(hashlib.blake2b(shingle.encode(), digest_size=4).digest(), "big")
            for shingle in shingles
        ],
        dtype=np.uint64,
    )
    # Multiply-shift (Dietzfelbinger et al. 1997): the product wraps at 2^64, its upper half is the hash.
    smallest: Signature = (values[:, None] * _FACTORS[None] + _TERMS[None] >> np.uint64(32)).min(0)
    return smallest


def agent_text(trajectory: Trajectory) -> str:
    """The agent's messages, reasoning and calls; its inputs may be the same in every trajectory."""
    texts = []
    for step in trajectory.steps:
        if step.source == "agent":
            calls = (f"{call.name} {call.arguments_text}" for call in step.tool_calls)
            texts += [step.reasoning or "", step.text, *calls]
    return " ".join(texts)


def _signed(records: Iterable[FeedbackRecord]) -> dict[str, tuple[str, Signature | None]]:
    """By content hash, the task and the signature: a kilobyte each, independent of the size of the trajectories."""
    found: dict[str, tuple[str, Signature | None]] = {}
    for trajectory in (side for record in records for side in record_trajectories(record)):
        key = trajectory.content_hash
        if key not in found:
            found[key] = (trajectory.task.id, signature(agent_text(trajectory)))
    return found


_DICE = np.random.default_rng(0)
_FACTORS = _DICE.integers(0, 1 << 63, size=_HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_TERMS = _DICE.integers(0, 1 << 63, size=_HASHES, dtype=np.uint64)
