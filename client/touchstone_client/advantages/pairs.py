"""Estimators that compare a roll-out with its counterpart."""

from collections import Counter
from collections.abc import Sequence

from touchstone_client.advantages.values import Advantage, Rollout, among, spread, standardised


def pair_gain(group: Sequence[Rollout], *, scale: bool = True, eps: float = 1e-4) -> list[Advantage]:
    """The roll-out after feedback has reward after minus before, standardised over the pairs of the group; the one
    before has its reward standardised among those before.

    Rewards of reflections in Retroformer (Yao et al., arXiv 2308.02151); WaltzRL (arXiv 2510.08240) pays the agent that
    gives the feedback the same difference.
    """
    pairs: dict[str, list[int]] = {}
    for i, rollout in enumerate(group):
        if rollout.pair is None:
            raise ValueError(f"roll-out {i} has no pair, which this estimator needs")
        pairs.setdefault(rollout.pair, []).append(i)
    for name, places in pairs.items():
        if len(places) != 2:
            raise ValueError(f"pair {name!r} has {len(places)} roll-outs; it needs one before and one after")
    before = [places[0] for places in pairs.values()]
    after = [places[1] for places in pairs.values()]
    gains = [group[j].reward - group[i].reward for i, j in zip(before, after, strict=True)]
    found = [0.0] * len(group)
    for places, values in ((before, [group[i].reward for i in before]), (after, gains)):
        for i, value in zip(places, standardised(values, scale, eps), strict=True):
            found[i] = value
    return spread(group, found)


def co_reward(group: Sequence[Rollout], *, scale: bool = True, eps: float = 1e-4) -> list[Advantage]:
    """1 for an answer that most roll-outs of the other phrasing gave, else 0; standardised within its phrasing.

    `reward` is not read. The group has roll-outs of two phrasings, `twin`. Where two answers are
    equally frequent, there is no majority. Co-Reward (Zhang et al., arXiv 2508.00410).
    """
    for i, rollout in enumerate(group):
        for name in ("twin", "answer"):
            if getattr(rollout, name) is None:
                raise ValueError(f"roll-out {i} has no {name}, which this estimator needs")
    twins = list(dict.fromkeys(rollout.twin for rollout in group))
    if group and len(twins) != 2:
        raise ValueError(
            f"the group has roll-outs of {len(twins)} phrasings (twin); this estimator needs two"
        )
    votes = {twin: _majority([rollout.answer for rollout in group if rollout.twin == twin]) for twin in twins}
    other = dict(zip(twins, reversed(twins), strict=True))
    agreed = [
        float(rollout.answer == votes[other[rollout.twin]]) if votes[other[rollout.twin]] else 0.0
        for rollout in group
    ]
    return spread(group, among([rollout.twin for rollout in group], agreed, scale, eps))


def _majority(answers: Sequence[str | None]) -> str | None:
    (most, *others) = Counter(answers).most_common(2)
    return None if others and others[0][1] == most[1] else most[0]
