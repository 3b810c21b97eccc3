"""Trajectories of numbers whose steps are no rows of one length: sets of any size, and teams of several agents.

Recordings of Gymnasium and PettingZoo environments keep the elements of a `Sequence`, and the nodes and edges of a
`Graph`, after the fixed numbers of a step: how many there are, then their rows. The metadata of the trajectory say how
long the fixed part and the rows of each set are; those of a team say it of each agent.
"""

import hashlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.errors import RewardError
from workers.schema import Features, Step, Task, Trajectory
from workers.text.numeric import NumberRenderer, Numbers, Row, numbers_of
from workers.text.rendered import Content

SetRows = tuple[Row, ...]


@dataclass(frozen=True)
class NumberLayout:
    """What the steps of a trajectory are made of.

    lengths: how many fixed numbers a step can have, ascending: one, or those of the kinds of agents of a team. sets:
    the name of each set and how many numbers its rows have. is_team: whether several agents act.
    """

    lengths: tuple[int, ...]
    sets: tuple[tuple[str, int], ...] = ()
    is_team: bool = False

    @property
    def is_plain(self) -> bool:
        """Rows of one length, all of one agent."""
        return not self.sets and not self.is_team and len(self.lengths) == 1


@dataclass(frozen=True)
class SetNumbers(Numbers):
    """sets: by kept agent step, by set of the layout, its rows. agents: by kept agent step, the place of who acted
    among the agents, in the order in which they first did."""

    sets: tuple[tuple[SetRows, ...], ...] = ()
    agents: tuple[int, ...] = ()

    @cached_property
    def key(self) -> bytes:
        numbers = array("d", (self.steps, len(self.rows)))
        for row, sets, agent in zip(self.rows, self.sets, self.agents, strict=True):
            numbers.extend((len(row), *row, agent))
            for elements in sets:
                numbers.append(len(elements))
                for element in elements:
                    numbers.extend(element)
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()


@dataclass(frozen=True)
class SetRenderer(NumberRenderer):
    """features: None, as the layout says it. A team's earliest steps go as others do, whoever's they are."""

    layout: NumberLayout = NumberLayout(())

    @property
    def warm_up_content(self) -> Trajectory:
        start = self.layout.lengths[0] - self.goal_length
        sets = [{"name": name, "numbers": [""] * width} for name, width in self.layout.sets]
        step = Step(source="agent", features=(0.0,) * (start + len(sets)))
        return Trajectory(
            steps=(step,),
            task=Task(id=""),
            metadata={"numbers_before_sets": start, "sets": sets} if sets else {},
        )

    def render(self, content: Content) -> SetNumbers:
        """Raises RewardError for content without numbers, or with others than the layout has."""
        if isinstance(content, Features):
            raise RewardError(
                f"this model reads {self._reads}, which rows of numbers alone do not tell; send the trajectory as it "
                "was recorded, in the form `trajectory`.",
                pointer="/features",
            )
        whole, _ = numbers_of(content)
        assert isinstance(content, Trajectory)
        goal = self._goal(content) if self.conditioned else ()
        rows, sets = [], []
        for agent_step, (index, row) in enumerate(zip(content.agent_steps, whole, strict=True)):
            pointer = f"/trajectory/steps/{index}"
            fixed, found = self._divided(row, content, index, agent_step, pointer)
            if len(fixed) + len(goal) not in self.layout.lengths:
                known = " or ".join(str(length - len(goal)) for length in self.layout.lengths)
                raise RewardError(
                    f"agent step {agent_step} has {len(fixed)} numbers; this model reads {known}.",
                    pointer=pointer,
                )
            rows.append((*fixed, *goal))
            sets.append(found)
        agents = _places(content.steps[index].speaker or "" for index in content.agent_steps)
        kept = slice(-self.max_steps, None)
        return SetNumbers(tuple(rows[kept]), len(rows), tuple(sets[kept]), agents[kept])

    @property
    def _reads(self) -> str:
        parts = ["what several agents do"] if self.layout.is_team else []
        return " and ".join(parts + (["sets of numbers"] if self.layout.sets else []))

    def _divided(
        self, row: Row, content: Trajectory, index: int, agent_step: int, pointer: str
    ) -> tuple[Row, tuple[SetRows, ...]]:
        """The fixed numbers of a step, and the rows of its sets."""
        if not self.layout.sets:
            return row, ()
        start, given = recorded_sets(content, content.steps[index].speaker)
        if given and given != self.layout.sets:
            raise RewardError(
                f"agent step {agent_step} has the sets {_named(given)}; this model reads {_named(self.layout.sets)}.",
                pointer=pointer,
            )
        if start is None:  # an agent of a team that sees no set
            return row, ((),) * len(self.layout.sets)
        rest, sets = row[start:], []
        for name, width in self.layout.sets:
            count = rest[0] if rest else -1.0
            if count < 0 or count != int(count) or len(rest) < 1 + int(count) * width:
                raise RewardError(
                    f"agent step {agent_step} does not have the rows of its set {name!r}: after {start} fixed numbers "
                    f"stand, for each set, how many rows it has, and these, {width} numbers each.",
                    pointer=pointer,
                )
            end = 1 + int(count) * width
            sets.append(tuple(rest[at : at + width] for at in range(1, end, width)))
            rest = rest[end:]
        return row[:start], tuple(sets)

    def model_input(self, rendered: Numbers) -> list[Any]:
        assert isinstance(rendered, SetNumbers)
        sets = [[[list(element) for element in elements] for elements in step] for step in rendered.sets]
        return [*super().model_input(rendered), sets, list(rendered.agents)]

    def settings(self) -> list[Any]:
        layout = self.layout
        return [
            *super().settings(),
            [list(layout.lengths), [list(part) for part in layout.sets], layout.is_team],
        ]


def layout_of(examples: Iterable[Trajectory], goal_length: int = 0) -> NumberLayout:
    """That of the trajectories. goal_length: how many numbers of a goal stand after the fixed ones.

    Raises RewardError where agents of one team have different sets.
    """
    lengths: set[int] = set()
    sets: set[tuple[tuple[str, int], ...]] = set()
    is_team = False
    for example in examples:
        acting = [example.steps[index] for index in example.agent_steps]
        is_team = is_team or len({step.speaker for step in acting}) > 1
        for step in acting:
            start, found = recorded_sets(example, step.speaker)
            lengths.add(len((step.features or ())[:start]) + goal_length)
            sets |= {found} if found else set()
    if len(sets) > 1:
        raise RewardError(
            "the agents of a team have different sets of numbers ("
            + ", or ".join(map(_named, sorted(sets)))
            + "), "
            "which no model reads; train on the trajectories of each agent.",
            pointer="/backbone",
        )
    return NumberLayout(tuple(sorted(lengths)), sets.pop() if sets else (), is_team)


def recorded_sets(
    trajectory: Trajectory, speaker: str | None
) -> tuple[int | None, tuple[tuple[str, int], ...]]:
    """How many fixed numbers stand before the sets in the steps of the speaker, and the sets; (None, ()) without."""
    metadata: Any = trajectory.metadata
    agents = metadata.get("agents")
    if isinstance(agents, Mapping) and isinstance(agents.get(speaker), Mapping):
        metadata = agents[speaker]
    start, sets = metadata.get("numbers_before_sets"), metadata.get("sets")
    if not (isinstance(start, int) and isinstance(sets, list)):
        return None, ()
    return start, tuple((str(part.get("name") or ""), len(part.get("numbers") or ())) for part in sets)


def _places(speakers: Iterable[str]) -> tuple[int, ...]:
    places: dict[str, int] = {}
    return tuple(places.setdefault(speaker, len(places)) for speaker in speakers)


def _named(sets: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name!r} of {width} numbers" for name, width in sets)
