"""Judges behind an endpoint, as the engine knows them: how they are asked is up to its caller.

A judge reads words and steps, as reward models do: never the task's instruction or the outcome, which not every form of
an item has.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from workers.errors import RewardError
from workers.prompts.trajectory_text import leaves_out
from workers.schema import Features, ScoreInput, Task, Text, TokenIds, Trajectory
from workers.schema.endpoints import EndpointSpec, JudgePart
from workers.schema.messages import build_trajectory, from_prompt_response
from workers.schema.model_score import ModelScore


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's score of a trajectory. value: 0 to 1; None where it cannot tell. critique: reasons, by criterion."""

    value: float | None
    critique: str


Ask = Callable[[JudgePart, Sequence[Trajectory]], Awaitable[list[Opinion]]]


async def no_judge(part: JudgePart, trajectories: Sequence[Trajectory]) -> list[Opinion]:
    raise RewardError(f"the judge {part.judge} cannot be called from this process.")


@dataclass(frozen=True, slots=True)
class JudgeComponents:
    """The judges of a spec. counted: those with a weight, or that a gate reads; the others only write critiques."""

    parts: tuple[JudgePart, ...]
    counted: frozenset[str]

    @classmethod
    def from_spec(cls, spec: EndpointSpec) -> "JudgeComponents":
        parts = tuple(component for component in spec.components if isinstance(component, JudgePart))
        return cls(parts, frozenset(part.name for part in parts if part.weight or part.name in spec.gates))

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


def judge_score(part: JudgePart, opinion: Opinion, steps: int, index: int) -> ModelScore:
    """All of it belongs to the whole trajectory, so the last step has it. Raises RewardError at `/<index>` where there
    is no number."""
    value = part.otherwise if opinion.value is None else opinion.value
    if value is None:
        raise RewardError(
            f"the judge {part.judge} cannot tell how good this is: {opinion.critique}\nGive the component {part.name} "
            "an `otherwise`, or remove the item.",
            pointer=f"/{index}",
        )
    return ModelScore.at_last_step(value, steps)


def _read(trajectory: Trajectory) -> tuple[Trajectory, bool]:
    trajectory = replace(trajectory, task=Task(id=""))
    return trajectory, leaves_out(trajectory)
