"""What a model gets most wrong, so that people can look at it."""

from collections.abc import Iterable, Sequence
from typing import Any

from workers.evaluate.predictions import ScoredRecord
from workers.evaluate.preference import Prediction
from workers.schema import Trajectory

_SHOWN = 12
# How wrong, of what, what people or the verifier said, what the model gives.
Wrong = tuple[float, ScoredRecord, Any, Any]


def worst_mistakes(found: Sequence[Prediction], most: int = _SHOWN) -> list[dict[str, Any]]:
    """[{task, item, annotator, chosen, rejected, margin}], the widest wrong margin first; one for each pair.

    chosen, rejected: {id, hash, raw}; id is that of the stored trajectory, null where it has none.
    """
    wrong = sorted(
        (prediction for prediction in found if prediction.is_strict and prediction.margin < 0),
        key=lambda prediction: prediction.margin,
    )
    out: list[dict[str, Any]] = []
    seen: set[frozenset[str]] = set()
    for prediction in wrong:
        pair = frozenset((prediction.record.a.content_hash, prediction.record.b.content_hash))
        if pair not in seen and len(out) < most:
            seen.add(pair)
            out.append(prediction_to_json(prediction))
    return out


def worst_records(
    wrong: Iterable[Wrong], *, about: str | None = None, most: int = _SHOWN
) -> list[dict[str, Any]]:
    """[{task, trajectory: {id, hash, raw}, about, said, given}], the worst first; one for each trajectory.

    Only what is more than 0 wrong. about: the criterion they were judged by.
    """
    out: dict[str, dict[str, Any]] = {}
    for badness, scored, said, given in sorted(wrong, key=lambda each: -each[0]):
        side = _side(scored.record.trajectory, scored.scores[0].raw)
        if badness > 0 and side["hash"] not in out and len(out) < most:
            out[side["hash"]] = {
                "task": scored.task,
                "trajectory": side,
                "about": about,
                "said": said,
                "given": given,
            }
    return list(out.values())


def prediction_to_json(prediction: Prediction) -> dict[str, Any]:
    """A strict comparison as JSON."""
    record = prediction.record
    sides = [_side(side, raw) for side, raw in zip((record.a, record.b), prediction.raw, strict=True)]
    chosen, rejected = sides if record.choice == "a" else reversed(sides)
    return {
        "task": record.a.task.id,
        "item": record.item,
        "annotator": record.annotator,
        "chosen": chosen,
        "rejected": rejected,
        "margin": prediction.margin,
    }


def _side(trajectory: Trajectory, raw: float) -> dict[str, Any]:
    return {"id": trajectory.id, "hash": trajectory.content_hash, "raw": raw}
