"""Judges behind an endpoint, as the engine knows them: who is asked is none of its business.

A judge reads words and steps, as reward models do: never the task's instruction or the outcome, which not every form of
an item has.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from workers.engine.protocol import Rated
from workers.errors import RewardError
from workers.prompts.trajectory_text import leaves_out
from workers.schema import Features, Item, Task, Text, TokenIds, Trajectory
from workers.schema.endpoints import EndpointSpec, JudgePart
from workers.schema.messages import build_trajectory, from_prompt_response


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge says of a run. value: 0 to 1; None where it cannot tell. critique: why, by criterion, in words."""

    value: float | None
    critique: str


Ask = Callable[[JudgePart, Sequence[Trajectory]], Awaitable[list[Opinion]]]


async def no_judge(part: JudgePart, runs: Sequence[Trajectory]) -> list[Opinion]:
    raise RewardError(f"the judge {part.judge} cannot be asked from here: this engine calls nobody.")


@dataclass(frozen=True, slots=True)
class Bench:
    """The judges of a spec. counted: those with a weight, or that a gate looks at; the others only say why."""

    parts: tuple[JudgePart, ...]
    counted: frozenset[str]

    @classmethod
    def of(cls, spec: EndpointSpec) -> "Bench":
        parts = tuple(one for one in spec.components if isinstance(one, JudgePart))
        return cls(parts, frozenset(one.name for one in parts if one.weight or one.name in spec.gates))

    def asked(self, *, writes: bool) -> list[JudgePart]:
        """Who has to be asked. writes: whether critiques are wanted; else nobody is paid for them."""
        return [one for one in self.parts if writes or one.name in self.counted]


def readable(item: Item) -> tuple[Trajectory, bool]:
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


def rated(part: JudgePart, opinion: Opinion, steps: int, index: int) -> Rated:
    """All of it belongs to the whole run, so the last step has it. Raises RewardError at `/<index>` where there is no
    number."""
    value = part.otherwise if opinion.value is None else opinion.value
    if value is None:
        raise RewardError(
            f"the judge {part.judge} cannot tell how good this is: {opinion.critique}\nGive the component {part.name} "
            "an `otherwise`, or leave the item out.",
            pointer=f"/{index}",
        )
    return Rated(value, (*[0.0] * (steps - 1), value))


def _read(run: Trajectory) -> tuple[Trajectory, bool]:
    run = replace(run, task=Task(id=""))
    return run, leaves_out(run)
