"""What a model gets most wrong, so that people can look at it."""

from collections.abc import Iterable, Sequence
from typing import Any

from workers.evaluate.judged import Judged
from workers.evaluate.preference import Prediction
from workers.schema import Trajectory

_SHOWN = 12
# How wrong, of what, what people or the verifier said, what the model gives.
Wrong = tuple[float, Judged, Any, Any]


def worst_mistakes(found: Sequence[Prediction], most: int = _SHOWN) -> list[dict[str, Any]]:
    """[{task, item, annotator, chosen, rejected, margin}], the widest wrong margin first; one for each pair.

    chosen, rejected: {id, hash, raw}; id is that of the stored trajectory, null where it has none.
    """
    wrong = sorted((one for one in found if one.is_strict and one.margin < 0), key=lambda one: one.margin)
    out: list[dict[str, Any]] = []
    seen: set[frozenset[str]] = set()
    for one in wrong:
        pair = frozenset((one.record.a.content_hash, one.record.b.content_hash))
        if pair not in seen and len(out) < most:
            seen.add(pair)
            out.append(told(one))
    return out


def worst_judged(
    wrong: Iterable[Wrong], *, about: str | None = None, most: int = _SHOWN
) -> list[dict[str, Any]]:
    """[{task, trajectory: {id, hash, raw}, about, said, given}], the worst first; one for each trajectory.

    Only what is more than 0 wrong. about: the criterion they were judged by.
    """
    out: dict[str, dict[str, Any]] = {}
    for badness, one, said, given in sorted(wrong, key=lambda each: -each[0]):
        side = _side(one.record.trajectory, one.scores[0].raw)
        if badness > 0 and side["hash"] not in out and len(out) < most:
            out[side["hash"]] = {
                "task": one.task,
                "trajectory": side,
                "about": about,
                "said": said,
                "given": given,
            }
    return list(out.values())


def told(one: Prediction) -> dict[str, Any]:
    """A strict comparison as JSON."""
    record = one.record
    sides = [_side(side, raw) for side, raw in zip((record.a, record.b), one.raw, strict=True)]
    chosen, rejected = sides if record.choice == "a" else reversed(sides)
    return {
        "task": record.a.task.id,
        "item": record.item,
        "annotator": record.annotator,
        "chosen": chosen,
        "rejected": rejected,
        "margin": one.margin,
    }


def _side(trajectory: Trajectory, raw: float) -> dict[str, Any]:
    return {"id": trajectory.id, "hash": trajectory.content_hash, "raw": raw}
