"""Estimators that give the steps of a roll-out credit by what the trainer knows of each step."""

import math
from collections.abc import Sequence
from itertools import groupby, pairwise

from touchstone_client.advantages.values import (
    Advantage,
    Rollout,
    among,
    lifted,
    require,
    split,
    standardised,
    to_go,
)


def entropy_shares(group: Sequence[Rollout], *, scale: bool = True, eps: float = 1e-4) -> list[Advantage]:
    """As `grpo`; a step has it times its entropy over the mean entropy of its roll-out's steps.

    Where all are 0, every step has the roll-out's. EPO (arXiv 2509.22576) balances entropies of steps in the loss; this
    does so in the advantage, and the mean over a roll-out's steps stays what it was.
    """
    require(group, "entropies")
    if any(entropy < 0 for rollout in group for entropy in rollout.entropies):
        raise ValueError("entropies must be at least 0")
    found = []
    episode = standardised([rollout.reward for rollout in group], scale, eps)
    for base, rollout in zip(episode, group, strict=True):
        mean = math.fsum(rollout.entropies) / len(rollout.entropies)
        shares = [entropy / mean if mean else 1.0 for entropy in rollout.entropies]
        found.append(Advantage(base, tuple(base * share for share in shares)))
    return found


def igpo(
    group: Sequence[Rollout], *, gamma: float = 1.0, scale: bool = True, eps: float = 1e-4
) -> list[Advantage]:
    """A turn's reward is how much it raised the probability of the reference answer; the last one's is the roll-out's.

    With p_t = exp(logprobs[t]) before turn t: r_t = p_t+1 - p_t, and r_T = reward. Standardised over all turns of the
    group; a step has the discounted sum of its own and the later ones. IGPO (Wang et al., arXiv 2510.14967).
    """
    require(group, "logprobs")
    if any(logprob > 0 for rollout in group for logprob in rollout.logprobs):
        raise ValueError("logprobs must be at most 0")
    flat = []
    for rollout in group:
        known = [math.exp(logprob) for logprob in rollout.logprobs]
        flat += [after - before for before, after in pairwise(known)] + [rollout.reward]
    rows = split(standardised(flat, scale, eps), [len(rollout.logprobs) for rollout in group])
    found = [tuple(to_go(row, gamma)) for row in rows]
    return [Advantage(steps[0], steps) for steps in found]


def m_grpo(group: Sequence[Rollout], *, scale: bool = True, eps: float = 1e-4) -> list[Advantage]:
    """The main agent's steps have the roll-out's advantage, as `grpo`; a sub-agent's have that of their invocation.

    The main agent is that of the first step. An invocation is an unbroken row of a sub-agent's steps. Its reward is the
    mean of its step rewards, where they are known, and else the roll-out's, standardised among all invocations of that
    sub-agent in the group. M-GRPO (Hong et al., arXiv 2511.13288).
    """
    require(group, "agent")
    episode = standardised([rollout.reward for rollout in group], scale, eps)
    runs = [
        (i, name, [t for t, _ in row])
        for i, rollout in enumerate(group)
        for name, row in groupby(enumerate(rollout.agent), key=lambda pair: pair[1])
        if name != rollout.agent[0]
    ]
    rewards = [
        math.fsum(group[i].steps[t] for t in row) / len(row) if group[i].steps else group[i].reward
        for i, _, row in runs
    ]
    within = among([name for _, name, _ in runs], rewards, scale, eps)
    steps = [[base] * len(rollout.agent) for base, rollout in zip(episode, group, strict=True)]
    for (i, _, row), value in zip(runs, within, strict=True):
        for t in row:
            steps[i][t] = value
    return [Advantage(base, tuple(row)) for base, row in zip(episode, steps, strict=True)]


def segments(
    group: Sequence[Rollout], *, omega: float = 1.0, scale: bool = True, eps: float = 1e-4
) -> list[Advantage]:
    """As `grpo`, plus omega times the mean step reward of the step's segment, standardised over all segments.

    A segment is an unbroken row of steps with the same name: what was written before the agent edited its context is no
    prefix of what came after. omega 0: DCPO of Memory-as-Action (arXiv 2510.12635), where all segments have the
    roll-out's advantage; step rewards are not needed then.
    """
    require(group, "segment", *(("steps",) if omega else ()))
    episode = standardised([rollout.reward for rollout in group], scale, eps)
    rows = [
        (i, [t for t, _ in row])
        for i, rollout in enumerate(group)
        for _, row in groupby(enumerate(rollout.segment), key=lambda pair: pair[1])
    ]
    means = [math.fsum(group[i].steps[t] for t in row) / len(row) if omega else 0.0 for i, row in rows]
    within = [[0.0] * len(rollout.segment) for rollout in group]
    for (i, row), value in zip(rows, standardised(means, scale, eps) if omega else means, strict=True):
        for t in row:
            within[i][t] = value
    return lifted(episode, within, omega)


def foresight(
    group: Sequence[Rollout], *, omega: float = 1.0, gamma: float = 1.0, scale: bool = True, eps: float = 1e-4
) -> list[Advantage]:
    """As `grpo`, plus omega times what a step's subgoal earned, standardised among the steps at the same place.

    Step rewards are scores of subgoals; a step has its own plus gamma times the next one's: how well what it chose was
    carried out. After the foresight advantage of Hi-Agent (arXiv 2510.14388), which needs no longer roll-outs.
    """
    require(group, "steps")
    seen = [
        own + gamma * after
        for rollout in group
        for own, after in zip(rollout.steps, [*rollout.steps[1:], 0.0], strict=True)
    ]
    return _placed(group, seen, omega, scale, eps)


def history_window(
    group: Sequence[Rollout], *, window: int = 3, omega: float = 1.0, scale: bool = True, eps: float = 1e-4
) -> list[Advantage]:
    """As `grpo`, plus omega times the sum of rewards of the `window` steps from this one on, standardised among steps
    at the same place: an action answers for the steps that still have it in their history.

    For agents that see their last actions alone, as HiconAgent (arXiv 2512.01763).
    """
    require(group, "steps")
    seen = [math.fsum(rollout.steps[t : t + window]) for rollout in group for t in range(len(rollout.steps))]
    return _placed(group, seen, omega, scale, eps)


def poad(
    group: Sequence[Rollout],
    *,
    gamma: float = 0.95,
    lam: float = 0.95,
    scale: bool = False,
    eps: float = 1e-8,
) -> list[Advantage]:
    """By token, from a critic's values: within a step without discount, from a step to the next with gamma.

    delta: next value - value within a step, and step reward + gamma * next step's first value - value at its last token
    (no value after the end). Summed up with lam (GAE). A step and a trajectory have their first token's. scale:
    standardised over all tokens of the group. Action decomposition (POAD, Wen et al., arXiv 2405.15821).
    """
    require(group, "steps", "values")
    flat = [value for rollout in group for value in _decomposed(rollout, gamma, lam)]
    if scale:
        flat = standardised(flat, True, eps)
    tokens = iter(split(flat, [len(row) for rollout in group for row in rollout.values]))
    found = []
    for rollout in group:
        rows = tuple(tuple(next(tokens)) for _ in rollout.values)
        found.append(Advantage(rows[0][0], tuple(row[0] for row in rows), rows))
    return found


def _decomposed(rollout: Rollout, gamma: float, lam: float) -> list[float]:
    if not all(rollout.values):
        raise ValueError("a step has no values; every step needs that of at least one token")
    found: list[float] = []
    carried = following = 0.0
    for reward, row in zip(reversed(rollout.steps), reversed(rollout.values), strict=True):
        discount, paid = gamma, reward
        for value in reversed(row):
            carried = paid + discount * following - value + discount * lam * carried
            found.append(carried)
            discount, paid, following = 1.0, 0.0, value
    return found[::-1]


def _placed(
    group: Sequence[Rollout], seen: Sequence[float], omega: float, scale: bool, eps: float
) -> list[Advantage]:
    places = [t for rollout in group for t in range(len(rollout.steps))]
    within = split(among(places, seen, scale, eps), [len(rollout.steps) for rollout in group])
    return lifted(standardised([rollout.reward for rollout in group], scale, eps), within, omega)
