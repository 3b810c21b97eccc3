"""The renderer of the linear backbone: what the agent wrote at each step, what its calls gave back, and the
step's structure.

What a step renders to depends on that step and on those before it, never on later ones, and nothing is cut.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.errors import RewardError
from workers.schema import Features, Part, Step, Task, Text, TokenIds, Trajectory
from workers.schema.conditions import Condition, conditions_read
from workers.schema.records import Source
from workers.text.ngrams import pieces, words
from workers.text.rendered import Content, UnsharedInput
from workers.text.segments import segments
from workers.text.speakers import with_names
from workers.text.structure import NAMES, structure

_OWN = ("agent", "reasoning")
_PROBE = "Sorry, the order #17 (Zürich) wasn't found."


@dataclass(frozen=True)
class StepTexts(UnsharedInput):
    """agent_texts, observations: by agent step, what the agent wrote and called, and what its calls gave back.
    structure: [steps, len(NAMES)] float32. conditions: (name, text) of those that are read."""

    agent_texts: tuple[str, ...]
    observations: tuple[str, ...]
    structure: NDArray[np.float32] = field(compare=False)
    conditions: tuple[tuple[Condition, str], ...] = ()
    truncated = False

    @cached_property
    def tokens(self) -> int:
        """Words, and one for each step."""
        texts = (*self.agent_texts, *self.observations, *(text for _, text in self.conditions))
        return len(self.agent_texts) + sum(len(text.split()) for text in texts)

    @property
    def reads(self) -> tuple[int | None, ...]:
        return tuple(range(len(self.agent_texts)))

    @cached_property
    def key(self) -> bytes:
        digest = hashlib.blake2b(self.structure.tobytes(), digest_size=16)
        for text in (
            *self.agent_texts,
            *self.observations,
            *(part for pair in self.conditions for part in pair),
        ):
            encoded = text.encode("utf-8", "replace")
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
        return digest.digest()


@dataclass(frozen=True)
class StepTextRenderer:
    """names_speakers: whether what an agent wrote begins with its name, where the step has one. conditioned: which
    conditions are read."""

    names_speakers: bool = field(default=False, kw_only=True)
    conditioned: tuple[Condition, ...] = field(default=(), kw_only=True)
    rewrites = False

    @property
    def named_sources(self) -> frozenset[Source]:
        return frozenset(("agent",)) if self.names_speakers else frozenset()

    def render(self, content: Content, *, task_tokens: int | None = None) -> StepTexts:
        """Raises RewardError for content that has no text or no agent step. task_tokens: nothing is cut to fit."""
        if isinstance(content, Features):
            raise RewardError(
                "this model reads text; send messages, text or a trajectory.", pointer="/features"
            )
        if isinstance(content, TokenIds):
            raise RewardError(
                "this model reads words and has no tokenizer; send messages, text or a trajectory instead of token "
                "ids.",
                pointer="/input_ids",
            )
        if isinstance(content, Text):
            step = Step(source="agent", message=(Part(text=content.text),))
            content = Trajectory(steps=(step,), task=Task(id=""))
        if not content.agent_steps:
            raise RewardError("the trajectory has no agent step, so there is nothing to score.")
        shown = with_names(content) if self.names_speakers else content
        parts = [segments(shown.steps[index]) for index in shown.agent_steps]
        agent_texts, observations = (
            tuple(
                "\n".join(segment.text for segment in step if (segment.source in _OWN) == is_own)
                for step in parts
            )
            for is_own in (True, False)
        )
        conditions = conditions_read(content, self.conditioned)
        return StepTexts(agent_texts, observations, structure(content), conditions)

    def count(self, text: str) -> int:
        return len(text.split())

    def model_input(self, rendered: StepTexts) -> list[Any]:
        numbers = [[round(float(number), 4) for number in row] for row in rendered.structure]
        conditions = [[*map(list, rendered.conditions)]] if rendered.conditions else []
        return [[*rendered.agent_texts], [*rendered.observations], numbers, *conditions]

    def settings(self) -> list[Any]:
        probes = [words(_PROBE), words(_PROBE, salt=1), pieces(_PROBE)]
        return [[], [*NAMES], [[found.tolist(), counts.tolist()] for found, counts in probes]]
