"""The renderer of the `features` backbone: a trajectory as rows of numbers, one for each agent step."""

import hashlib
from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.errors import RewardError
from workers.schema import Features, Trajectory
from workers.schema.records import Source
from workers.text.rendered import Content, UnsharedInput

Row = tuple[float, ...]


@dataclass(frozen=True)
class Numbers(UnsharedInput):
    """rows: [kept agent steps][features], the latest ones."""

    rows: tuple[Row, ...]
    steps: int

    @property
    def tokens(self) -> int:
        return len(self.rows)

    @property
    def truncated(self) -> bool:
        return len(self.rows) < self.steps

    @property
    def reads(self) -> tuple[int | None, ...]:
        dropped = self.steps - len(self.rows)
        return tuple(None if step < dropped else step - dropped for step in range(self.steps))

    @cached_property
    def key(self) -> bytes:
        numbers = array("d", (self.steps, len(self.rows)))
        for row in self.rows:
            numbers.extend(row)
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()


@dataclass(frozen=True)
class NumberRenderer:
    """features: how many numbers a step has, as in training; None takes any. max_steps: the earliest steps go."""

    features: int | None
    max_steps: int
    rewrites = False
    named_sources = frozenset[Source]()

    def render(self, content: Content) -> Numbers:
        """Raises RewardError for content without numbers, or with more or fewer than in training."""
        if isinstance(content, Features):
            rows, pointer = content.rows, "/features"
        elif isinstance(content, Trajectory):
            rows, pointer = _rows(content), "/trajectory"
        else:
            raise RewardError(
                "this model reads numbers; send features, or a trajectory whose agent steps have them."
            )
        wanted = len(rows[0]) if self.features is None else self.features
        bad = next((place for place, row in enumerate(rows) if len(row) != wanted), None)
        if bad is not None:
            raise RewardError(
                f"agent step {bad} has {len(rows[bad])} numbers; this model reads {wanted}.", pointer=pointer
            )
        return Numbers(rows[-self.max_steps :], len(rows))

    def count(self, text: str) -> int:
        raise RewardError("this model reads numbers, so it has no tokens to count.")

    def model_input(self, rendered: Numbers) -> list[Any]:
        return [list(map(list, rendered.rows)), rendered.steps]

    def settings(self) -> list[Any]:
        return [[self.features, self.max_steps]]


def _rows(trajectory: Trajectory) -> tuple[Row, ...]:
    rows = []
    for agent_step, index in enumerate(trajectory.agent_steps):
        row = trajectory.steps[index].features
        if not row:
            raise RewardError(
                f"agent step {agent_step} has no features, which is all that this model reads.",
                pointer=f"/trajectory/steps/{index}",
            )
        rows.append(row)
    if not rows:
        raise RewardError(
            "the trajectory has no agent step, so there is nothing to score.", pointer="/trajectory"
        )
    return tuple(rows)
