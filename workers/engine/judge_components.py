"""Judges behind an endpoint, as the engine knows them: how they are asked is up to its caller.

A judge reads words and steps, as reward models do: never the task's instruction or the outcome, which not every form of
an item has.
"""

import dataclasses
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from workers.engine.judged_passages import each_passage
from workers.errors import RewardError
from workers.prompts.trajectory_text import leaves_out
from workers.schema import Features, ScoreInput, Task, Text, TokenIds, Trajectory
from workers.schema.components import JudgePart
from workers.schema.endpoints import EndpointSpec
from workers.schema.messages import build_trajectory, from_prompt_response
from workers.schema.model_score import ModelScore
from workers.schema.speakers import agent_steps_by

MAX_TURNS = 32
UNREAD, JUDGE_CUT = "unread:image", "judge_pictures_cut"  # flags


@dataclass(frozen=True, slots=True)
class PicturesSeen:
    """Of the pictures of a trajectory. shown: to the judge."""

    shown: int
    total: int

    @property
    def words(self) -> str:
        """A line of a critique; empty without pictures."""
        if not self.total:
            return ""
        if not self.shown:
            return f"Pictures: {self.total} not seen."
        if self.shown < self.total:
            return f"Pictures: {self.shown} of {self.total} seen, the others left out."
        return f"Pictures: {self.total} seen."


NO_PICTURES_SEEN = PicturesSeen(0, 0)


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's score of a trajectory. value: 0 to 1; None where it cannot tell. critique: reasons, by criterion.

    turns: its scores of the trajectory after earlier turns, each with the agent_step that ended the turn. passages: of
    a part that judges passages, its scores of them, each with the agent_step that retrieved it; of a part that labels
    steps, the value of each, -1 to 1. earned: of a part that attributes the score, what each agent step earned of it.
    pictures: how many the trajectory has, and how many of them the judge was shown.
    """

    value: float | None
    critique: str
    turns: tuple[tuple[int, float | None], ...] = ()
    passages: tuple[tuple[int, float | None], ...] | None = None
    earned: tuple[float, ...] = ()
    pictures: PicturesSeen = NO_PICTURES_SEEN


Ask = Callable[[JudgePart, Sequence[Trajectory]], Awaitable[list[Opinion]]]


async def no_judge(part: JudgePart, trajectories: Sequence[Trajectory]) -> list[Opinion]:
    raise RewardError(f"the judge {part.judge} cannot be called from this process.")


@dataclass(frozen=True, slots=True)
class JudgeComponents:
    """The judges of a spec. counted: those with a weight, or read by a transform; the others only write critiques."""

    parts: tuple[JudgePart, ...]
    counted: frozenset[str]

    @classmethod
    def from_spec(cls, spec: EndpointSpec) -> "JudgeComponents":
        parts = tuple(component for component in spec.components if isinstance(component, JudgePart))
        return cls(
            parts, frozenset(part.name for part in parts if part.weight or part.name in spec.components_read)
        )

    def required(self, *, with_critiques: bool) -> list[JudgePart]:
        """The judges to ask. Those that only write critiques cost nothing where none are wanted."""
        return [part for part in self.parts if with_critiques or part.name in self.counted]


def readable(item: ScoreInput) -> tuple[Trajectory, bool]:
    """The item as a judge reads it, and whether something is left out. Raises RewardError for what has no words."""
    content = item.content
    if isinstance(content, Text):
        return _read(build_trajectory(from_prompt_response([], content.text), Task(id="")))
    if isinstance(content, Trajectory):
        return _read(content)
    form = "features" if isinstance(content, Features) else "input_ids"
    assert isinstance(content, Features | TokenIds)
    raise RewardError(
        f"a judge of this endpoint reads words, and {form} are numbers; send messages, or a text.",
        pointer=f"/{form}",
    )


def require_earners(parts: Sequence[JudgePart], trajectory: Trajectory) -> None:
    """Raises RewardError where no step can earn what a judge is to attribute."""
    for part in parts:
        if part.attribute:
            agent_steps_by(trajectory, part.speakers)


def after_turns(trajectory: Trajectory) -> list[tuple[int, Trajectory]]:
    """The trajectory after each turn but the last, with the agent_step that ended the turn; at most `MAX_TURNS` - 1.

    A turn is what the agent did and what the user replied. Where there are more, neighbours are one turn.
    """
    ends, agent_steps = list[tuple[int, int]](), 0
    steps = trajectory.steps
    for place, step in enumerate(steps[:-1]):
        agent_steps += step.source == "agent"
        if agent_steps and step.source == "user" and steps[place + 1].source == "agent":
            ends.append((agent_steps - 1, place + 1))
    most = MAX_TURNS - 1
    if len(ends) > most:
        ends = [ends[(number + 1) * len(ends) // (most + 1)] for number in range(most)]
    return [(last, replace(trajectory, steps=steps[:end])) for last, end in ends]


async def ask_judge(ask: Ask, part: JudgePart, trajectories: Sequence[Trajectory]) -> list[Opinion]:
    """What the judge says of each trajectory, with its scores after earlier turns, or of its passages instead, where
    the part wants them."""
    if part.passages is not None:
        return await _ask_each_passage(ask, part, trajectories)
    if part.each_turn:
        return await _ask_each_turn(ask, part, trajectories)
    return await ask(part, trajectories)


async def _ask_each_passage(ask: Ask, part: JudgePart, trajectories: Sequence[Trajectory]) -> list[Opinion]:
    assert part.passages is not None
    passages = [each_passage(trajectory, part.passages) for trajectory in trajectories]
    pieces = [piece for own in passages for _, piece in own]
    scored = iter(await ask(part, pieces) if pieces else ())
    return [_of_passages([(place, next(scored)) for place, _ in own]) for own in passages]


def _of_passages(scored: Sequence[tuple[int, Opinion]]) -> Opinion:
    known = [opinion.value for _, opinion in scored if opinion.value is not None]
    value = None if len(known) < len(scored) else math.fsum(known) / len(known) if known else 0.0
    lines = [
        f"Passage {number}, agent step {place}: {opinion.critique}"
        for number, (place, opinion) in enumerate(scored, 1)
    ]
    return Opinion(
        value,
        "\n".join(lines) or "There is no passage.",
        passages=tuple((place, opinion.value) for place, opinion in scored),
        pictures=PicturesSeen(
            sum(opinion.pictures.shown for _, opinion in scored),
            sum(opinion.pictures.total for _, opinion in scored),
        ),
    )


async def _ask_each_turn(ask: Ask, part: JudgePart, trajectories: Sequence[Trajectory]) -> list[Opinion]:
    earlier = [after_turns(trajectory) for trajectory in trajectories]
    prefixes = [prefix for turns in earlier for _, prefix in turns]
    opinions = await ask(part, [*trajectories, *prefixes])
    found = iter(opinions[len(trajectories) :])
    return [
        dataclasses.replace(opinion, turns=tuple((last, next(found).value) for last, _ in turns))
        for opinion, turns in zip(opinions[: len(trajectories)], earlier, strict=True)
    ]


def picture_flags(flags: Sequence[str], opinions: Iterable[Opinion]) -> tuple[str, ...]:
    """The flags of an item, whose pictures may have been read by a judge: a judge that was shown them all or some of
    them has read them, and one that was not says so where they were read otherwise."""
    seen = [opinion.pictures for opinion in opinions if opinion.pictures.total]
    if not seen:
        return tuple(flags)
    is_read = UNREAD not in flags or any(each.shown for each in seen)
    kept = tuple(flag for flag in flags if flag != UNREAD or not is_read)
    return (*kept, JUDGE_CUT) if is_read and any(each.shown < each.total for each in seen) else kept


def judge_score(part: JudgePart, opinion: Opinion, steps: int, index: int) -> ModelScore:
    """The last step earns all but what the turns before it earned. Where the judge cannot tell after a turn, nothing
    has changed. Of passages, each step earns what its own add to the mean; `otherwise` is for each passage that the
    judge cannot tell of. An attributed score is earned as the judge attributes it. Raises RewardError at `/<index>`
    where there is no number for the whole."""
    if opinion.passages and (opinion.value is not None or part.otherwise is not None):
        earned = [0.0] * steps
        for place, score in opinion.passages:
            known = part.otherwise if score is None else score
            assert known is not None
            earned[place] += known / len(opinion.passages)
        return ModelScore.sum_of_steps(earned)
    value = part.otherwise if opinion.value is None else opinion.value
    if value is None:
        raise RewardError(
            f"the judge {part.judge} cannot tell how good this is: {opinion.critique}\nGive the component {part.name} "
            "an `otherwise`, or remove the item.",
            pointer=f"/{index}",
        )
    if opinion.earned and opinion.value is not None:
        return dataclasses.replace(ModelScore.at_last_step(value, steps), step_rewards=opinion.earned)
    earned, before = [0.0] * steps, 0.0
    for last, score in [*opinion.turns, (steps - 1, value)]:
        now = before if score is None else score
        earned[last] += now - before
        before = now
    return dataclasses.replace(ModelScore.at_last_step(value, steps), step_rewards=tuple(earned))


def _read(trajectory: Trajectory) -> tuple[Trajectory, bool]:
    trajectory = replace(trajectory, task=Task(id=""))
    return trajectory, leaves_out(trajectory)
