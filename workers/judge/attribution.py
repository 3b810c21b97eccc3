"""Scores of a whole trajectory, attributed to its steps by a language model (Sotopia-RL, arXiv 2508.03905, section 3).

There an utterance earns its points over the most points, times the score. Here points are shares of their sum, so that
what the steps earn adds up to the score and a longer trajectory earns no more.
"""

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec

from workers.errors import RewardError
from workers.judge.aggregation import clip_reason
from workers.judge.pictures import picture_limits
from workers.judge.rubric import Criterion, define_answer
from workers.llm.client import LLMClient
from workers.prompts.pictures import view_trajectory
from workers.prompts.templates import prompt, quoted
from workers.schema import Trajectory
from workers.schema.speakers import agent_steps_by

MOST_POINTS = 3


class _Contribution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    step: int
    points: Annotated[int, msgspec.Meta(ge=1, le=MOST_POINTS)]


class _Contributions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str
    steps: list[_Contribution]


class StepShares(msgspec.Struct, frozen=True, kw_only=True):
    """Of one criterion. shares: by agent step; they add up to 1."""

    shares: tuple[float, ...]
    reason: str


def attribute(
    model: LLMClient, criteria: Sequence[Criterion], run: Trajectory, *, speakers: Collection[str] = ()
) -> list[StepShares]:
    """By criterion. speakers: only their steps can earn, all agent steps without any.

    Raises NoAnswer; RewardError where none of the speakers has a step.
    """
    countable = agent_steps_by(run, speakers)
    keys = [f"c{number}" for number in range(len(criteria))]
    lines = [
        quoted({"key": key, "name": criterion.name, "definition": criterion.definition})
        for key, criterion in zip(keys, criteria, strict=True)
    ]
    view = view_trajectory(run, picture_limits(model.server), closely=countable)
    asked = prompt(
        "attribute",
        criteria="\n".join(lines),
        countable=quoted(countable),
        run=view.text,
    ).showing(view.pictures())
    shape = define_answer("Attributions", dict.fromkeys(keys, _Contributions))
    answer = model.ask(asked, shape, partial(_check, keys, countable))
    return [_attribution(run, countable, getattr(answer, key)) for key in keys]


def earned_by_step(parts: Sequence[tuple[float, float, Sequence[float]]]) -> list[float]:
    """By agent step: the sum over criteria of weight * place * share over the sum of the weights.

    parts: of each criterion its weight, not below 0, its place on its scale (0 to 1), and the shares of its steps.
    """
    total = math.fsum(weight for weight, _, _ in parts)
    rows = [[weight * place / total * share for share in shares] for weight, place, shares in parts]
    return [math.fsum(column) for column in zip(*rows, strict=True)]


def _attribution(run: Trajectory, countable: Sequence[int], found: _Contributions) -> StepShares:
    """Without any points, the last step that can earn it does."""
    points = {part.step: part.points for part in found.steps} or {countable[-1]: 1}
    total = sum(points.values())
    shares = tuple(points.get(place, 0) / total for place in run.agent_steps)
    return StepShares(shares=shares, reason=clip_reason(found.reason))


def _check(keys: Sequence[str], countable: Sequence[int], answer: Any) -> None:
    for key in keys:
        named = [part.step for part in getattr(answer, key).steps]
        for number, step in enumerate(named):
            if step not in countable:
                raise RewardError(
                    f"step {step} may not count; those that may are {', '.join(map(str, countable))}.",
                    pointer=f"/{key}/steps/{number}/step",
                )
            if step in named[:number]:
                raise RewardError(
                    f"step {step} is there twice; name each once.", pointer=f"/{key}/steps/{number}/step"
                )
