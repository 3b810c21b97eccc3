"""Transforms of a reward: a file for each kind, and a line in one of the tables below.

VALUES change one number, by the item; what bounds it bounds what steps gather, too: each step gets the change of the
transformed reward. ITEMS change an item's reward and steps. GROUPS do so for the items of a group together;
GROUP_VALUES change one number, by a function that the group's rewards make.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any

from workers.engine.item_score import ItemScore
from workers.engine.transforms import (
    clip,
    delta,
    gate,
    krc,
    no_repeats,
    pessimism,
    redistribute,
    risk,
    running,
    shaping,
    squash,
)
from workers.engine.transforms.running import RunningMoments
from workers.schema.transforms import (
    Clip,
    Delta,
    Gate,
    GeometricMean,
    NoRepeats,
    Normalise,
    Pessimism,
    Redistribute,
    Risk,
    RunningNormalise,
    Shaping,
    Squash,
    StepClip,
    StepSquash,
    Transform,
    TurnGate,
    ValueAtRisk,
)

VALUES: dict[type, Callable[[Any, float, ItemScore], float]] = {
    Clip: clip.apply,
    Squash: squash.apply,
    Gate: gate.apply,
    Pessimism: pessimism.apply,
}
ITEMS: dict[type, Callable[[Any, ItemScore], ItemScore]] = {
    Delta: delta.apply,
    StepClip: clip.apply_to_steps,
    StepSquash: squash.apply_to_steps,
    TurnGate: gate.apply_to_steps,
    GeometricMean: krc.apply,
    Redistribute: redistribute.apply,
    NoRepeats: no_repeats.apply,
}
GROUPS: dict[type, Callable[[Any, Sequence[ItemScore]], list[ItemScore]]] = {Shaping: shaping.apply}
GROUP_VALUES: dict[type, Callable[[Any, Sequence[float]], Callable[[float], float]]] = {
    Risk: risk.variance_penalty,
    ValueAtRisk: risk.tail,
}
Places = Sequence[Sequence[int]]


@dataclass(slots=True)
class TransformChain:
    """The transforms of a version, in their order. is_additive: steps add up to the reward; else each has its own.

    moments: of each transform that is normalised by all that was scored, by its place: the only state.
    """

    transforms: Sequence[Transform]
    is_additive: bool = True
    moments: dict[int, RunningMoments] = field(default_factory=dict)

    def apply(self, scores: Sequence[ItemScore], groups: Places | None = None) -> list[ItemScore]:
        """The scores of a request, already normalised. groups: the places of each group's items; by default each item
        is a group. Raises RewardError for pessimism without an ensemble."""
        found = list(scores)
        if not self.is_additive:
            found = [
                replace(score, step_scores=tuple(score.zero + gain for gain in score.gains))
                for score in found
            ]
        places = [[place] for place in range(len(found))] if groups is None else groups
        numbered = [
            (index, part) for index, part in enumerate(self.transforms) if not isinstance(part, Normalise)
        ]
        # Transforms of one number are applied together: so rounding does not depend on how many there are.
        for is_value, run in groupby(numbered, key=lambda entry: type(entry[1]) in VALUES):
            if is_value:
                parts = [part for _, part in run]
                found = [self._through_values(parts, score) for score in found]
            else:
                for index, part in run:
                    found = self._through(part, index, found, places)
        return found

    def _through_values(self, transforms: Sequence[Transform], score: ItemScore) -> ItemScore:
        def function(reward: float) -> float:
            for transform in transforms:
                reward = VALUES[type(transform)](transform, reward, score)
            return reward

        # The standard deviation is one for all steps: taking it off changes no difference.
        keeps_steps = all(isinstance(transform, Pessimism) for transform in transforms)
        return mapped(score, function, is_additive=self.is_additive, keeps_steps=keeps_steps)

    def _through(
        self, transform: Transform, index: int, scores: list[ItemScore], groups: Places
    ) -> list[ItemScore]:
        kind = type(transform)
        if kind in ITEMS:
            return [ITEMS[kind](transform, score) for score in scores]
        found = list(scores)
        if isinstance(transform, RunningNormalise) and transform.over != "group":
            groups = [range(len(scores))]
        for places in groups:
            group = [scores[place] for place in places]
            if kind in GROUPS:
                changed = GROUPS[kind](transform, group)
            else:
                function = self._function(transform, index, [score.reward for score in group])
                changed = [mapped(score, function, is_additive=self.is_additive) for score in group]
            for place, score in zip(places, changed, strict=True):
                found[place] = score
        return found

    def _function(
        self, transform: Transform, index: int, rewards: Sequence[float]
    ) -> Callable[[float], float]:
        if isinstance(transform, RunningNormalise):
            is_kept = transform.over == "running"
            moments = self.moments.setdefault(index, RunningMoments()) if is_kept else RunningMoments()
            return running.standardised(transform, rewards, moments)
        return GROUP_VALUES[type(transform)](transform, rewards)


def mapped(
    score: ItemScore, function: Callable[[float], float], *, is_additive: bool, keeps_steps: bool = False
) -> ItemScore:
    """The reward through a function. Each step gets the change of it, so that what has gathered after any step is the
    function there, less that before the first step: repeating a good step gains no more than it allows. Where steps do
    not add up, each step's own score goes through it. The same units."""
    reward = function(score.reward)
    if not is_additive:
        step_scores = tuple(map(function, score.step_scores))
        steps = score.steps if keeps_steps else tuple(step / score.unit for step in step_scores)
        return replace(score, reward=reward, steps=steps, step_scores=step_scores)
    if keeps_steps:
        return replace(score, reward=reward)
    rewards = [score.reward]
    for step in reversed(score.steps):
        rewards.append(rewards[-1] - score.unit * step)
    values = [function(gathered) for gathered in reversed(rewards)]
    steps = tuple((after - before) / score.unit for before, after in pairwise(values))
    return replace(score, reward=reward, steps=steps)
