"""What both engines of an induction need: enough points, and metrics that were known before."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from workers.errors import RewardError
from workers.induce.directory import Previous
from workers.induce.embedding import Embedder, Vectors
from workers.induce.evidence import Places
from workers.induce.meta import Aspect

HELD_OUT = 4  # one task in so many is held out
LEAST_POINTS = 10
LEAST_TRAJECTORIES = 5


def require_enough(aspects: Sequence[Aspect], comments: int, *, unsigned: int = 0) -> None:
    """Raises RewardError where there is too little to induce from. unsigned: points that neither praise nor blame."""
    runs = len({aspect.trajectory for aspect in aspects})
    if len(aspects) >= LEAST_POINTS and runs >= LEAST_TRAJECTORIES:
        return
    raise RewardError(
        f"{comments} comments make {len(aspects)} points of praise or blame on {runs} trajectories"
        f"{f' ({unsigned} more are neither)' if unsigned else ''}; metrics need at least {LEAST_POINTS} on "
        f"{LEAST_TRAJECTORIES}, since some are held out to see whether they are any good. Collect more comments."
    )


def one_sided(aspects: Sequence[Aspect]) -> list[str]:
    """A word for it where all points have one sign."""
    signs = Counter(aspect.sign for aspect in aspects)
    return [
        f"Every point {said}, so no metric knows what {missing} looks like. Ask for the other side too."
        for sign, said, missing in ((1, "praises", "bad"), (-1, "blames", "good"))
        if signs[sign] == len(aspects)
    ]


def known_of(aspects: Sequence[Aspect], groups: Sequence[Sequence[tuple[str, str]]]) -> list[Places]:
    """Rows of the aspects that groups name by comment and point. Raises RewardError where a group has none."""
    rows: dict[tuple[str, str], list[int]] = {}
    for row, aspect in enumerate(aspects):
        rows.setdefault((aspect.comment, aspect.feedback), []).append(row)
    found = [
        np.array(sorted({row for key in group for row in rows.get(key, ())}), dtype=np.intp)
        for group in groups
    ]
    for number, group in enumerate(found):
        if not len(group):
            raise RewardError(
                f"Nothing that metric {number + 1} was made of is there any more; reject it, then judge again."
            )
    return found


def kept_of(
    examples: Sequence[Sequence[tuple[Vectors, int]]],
    before: Sequence[Previous],
    encode: Embedder,
    alike: float,
) -> list[dict[str, Any] | None]:
    """Of each metric the one of before that it is: each the other's nearest by their examples, and alike enough.

    examples: of each metric the vectors of each side, and its sign.
    """
    if not before or not examples:
        return [None] * len(examples)
    known = [[(encode(one.good), 1), (encode(one.bad), -1)] for one in before]
    cosines = np.full((len(examples), len(before)), -1.0)
    for place, sides in enumerate(examples):
        for other, theirs in enumerate(known):
            found = [
                float((mine @ its.T).max(axis=1).mean())
                for mine, sign in sides
                for its, its_sign in theirs
                if its_sign == sign and len(mine) and len(its)
            ]
            cosines[place, other] = max(found, default=-1.0)
    nearest, back = cosines.argmax(axis=1), cosines.argmax(axis=0)
    return [
        {"id": before[other].id, "name": before[other].name, "alike": float(cosines[place, other])}
        if back[other] == place and cosines[place, other] >= alike
        else None
        for place, other in enumerate(nearest.tolist())
    ]
