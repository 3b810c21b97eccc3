"""The renderer of the `features` backbone: a trajectory as rows of numbers, one for each agent step."""

import hashlib
import json
from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workers.errors import RewardError
from workers.schema import Features, Trajectory
from workers.schema.conditions import Condition
from workers.schema.records import Source
from workers.text.rendered import Content, UnsharedInput

Row = tuple[float, ...]
GOAL_WORDS = 64


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
    """features: how many numbers a step has, as in training, those of the goal included; None takes any. max_steps:
    the earliest steps go. conditioned: with 'goal', the goal stands after the numbers of every step: its numbers, where
    it is a list of them, else its hashed words. goal_numbers: as in training; None for words.
    """

    features: int | None
    max_steps: int
    conditioned: tuple[Condition, ...] = ()
    goal_numbers: int | None = None
    rewrites = False
    named_sources = frozenset[Source]()

    @property
    def given_features(self) -> int | None:
        """How many numbers of a step an item has to bring."""
        return None if self.features is None else self.features - self.goal_length

    @property
    def goal_length(self) -> int:
        """How many numbers of a goal stand at the end of each row."""
        if not self.conditioned:
            return 0
        return GOAL_WORDS if self.goal_numbers is None else self.goal_numbers

    @property
    def warm_up_content(self) -> Features | Trajectory | None:
        """Something that it can read."""
        return None if self.given_features is None else Features(((0.0,) * self.given_features,))

    def render(self, content: Content) -> Numbers:
        """Raises RewardError for content without numbers, or with more or fewer than in training."""
        rows, pointer = numbers_of(content)
        if self.conditioned:
            assert isinstance(content, Features | Trajectory)
            goal = self._goal(content)
            rows = tuple((*row, *goal) for row in rows)
        wanted = len(rows[0]) if self.features is None else self.features
        bad = next((place for place, row in enumerate(rows) if len(row) != wanted), None)
        if bad is not None:
            goal_size = wanted - (self.given_features or wanted)
            raise RewardError(
                f"agent step {bad} has {len(rows[bad]) - goal_size} numbers; this model reads {wanted - goal_size}.",
                pointer=pointer,
            )
        return Numbers(rows[-self.max_steps :], len(rows))

    def _goal(self, content: Features | Trajectory) -> Row:
        """Zeros where none is stated."""
        text = content.conditions.get("goal", "") if isinstance(content, Trajectory) else ""
        numbers = goal_numbers(text)
        if self.goal_numbers is None:
            if numbers is not None:
                raise RewardError("this model reads goals in words; say the goal in words.", pointer="/goal")
            return hashed_words(text)
        if not text:
            return (0.0,) * self.goal_numbers
        if numbers is None or len(numbers) != self.goal_numbers:
            raise RewardError(
                f'this model reads goals of {self.goal_numbers} numbers; send them as a list, such as "[0.5, 1.0]".',
                pointer="/goal",
            )
        return numbers

    def count(self, text: str) -> int:
        raise RewardError("this model reads numbers, so it has no tokens to count.")

    def model_input(self, rendered: Numbers) -> list[Any]:
        return [list(map(list, rendered.rows)), rendered.steps]

    def settings(self) -> list[Any]:
        return [[self.features, self.max_steps, *([self.goal_numbers] if self.conditioned else [])]]


def goal_numbers(text: str) -> Row | None:
    """Those of a goal that is a list of numbers as JSON; None of any other text."""
    if not text.lstrip().startswith("["):
        return None
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    return tuple(map(float, values))


def hashed_words(text: str) -> Row:
    """[GOAL_WORDS] of length 1, or zeros: the words of a text, each added with a sign of its hash (Weinberger et al.
    2009)."""
    found = [0.0] * GOAL_WORDS
    for word in text.lower().split():
        digest = hashlib.blake2b(word.strip(".,;:!?\"'()").encode(), digest_size=4).digest()
        found[int.from_bytes(digest[:3], "little") % GOAL_WORDS] += 1.0 if digest[3] & 1 else -1.0
    norm = sum(value * value for value in found) ** 0.5
    return tuple(value / norm for value in found) if norm else tuple(found)


def numbers_of(content: Content) -> tuple[tuple[Row, ...], str]:
    """The row of each agent step, and where they stand. Raises RewardError for content without numbers."""
    if isinstance(content, Features):
        return content.rows, "/features"
    if isinstance(content, Trajectory):
        return _rows(content), "/trajectory"
    raise RewardError("this model reads numbers; send features, or a trajectory whose agent steps have them.")


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
