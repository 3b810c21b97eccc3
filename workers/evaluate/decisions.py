"""What a model decided on each held-out comparison, so that two models can be compared on the same ones later."""

import hashlib
from collections import Counter
from collections.abc import Sequence

from workers.evaluate.preference import Prediction, correctness

MAX_DECISIONS = 2000  # of one report; the first by content hash, so that two models keep the same ones
Decision = tuple[
    str, str, str, float, int
]  # preferred, other (content hashes), task (hashed), correctness, records


def held_out_decisions(found: Sequence[Prediction]) -> list[Decision]:
    """Of strict comparisons: correctness 1, 0.5 (equal rewards) or 0 for each answer that was given."""
    records = Counter[tuple[str, str, str, float]]()
    for prediction in found:
        if not prediction.is_strict:
            continue
        first, second = prediction.record.a, prediction.record.b
        preferred, other = (first, second) if prediction.record.choice == "a" else (second, first)
        task = hashlib.blake2s(str(first.task.id).encode(), digest_size=8).hexdigest()
        records[
            (preferred.content_hash, other.content_hash, task, float(correctness(prediction.margin)))
        ] += 1
    return [(*decision, count) for decision, count in sorted(records.items())[:MAX_DECISIONS]]
