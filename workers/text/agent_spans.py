"""The renderer of models that are asked how likely a language model writes what the agent wrote.

The tokens of an agent step are what a policy would have drawn: from the end of the prompt that asks for the step to the
mark that ends its message. What it gets back is a part of the next prompt.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, chain, pairwise
from typing import Any

from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema import Step
from workers.text.conversations import ConversationRenderer, Tokens
from workers.text.dialect import Message

_MARK = "\ue125"  # a private character, in place of a step, to find where its message begins


@dataclass(frozen=True)
class AgentSpans(Tokens):
    """spans: by agent step, first token and end of what the agent wrote; None of a step that was dropped."""

    spans: tuple[tuple[int, int] | None, ...] = ()

    @property
    def kept_spans(self) -> list[tuple[int, int]]:
        return [span for span in self.spans if span is not None]

    @property
    def places(self) -> list[int]:
        """Where the tokens of the agent are predicted: at the one before each of them."""
        return [place - 1 for span in self.kept_spans for place in range(*span)]

    @cached_property
    def key(self) -> bytes:
        numbers = array("q", (self.truncated, len(self.spans)))
        numbers.extend(end for span in self.spans for end in span or (-1, -1))
        numbers.extend(self.ids)
        return blake2b(numbers.tobytes(), digest_size=16).digest()


class AgentSpanRenderer(ConversationRenderer):
    """A text, and token ids, are one step that the agent wrote, whose first token nothing predicts."""

    def model_input(self, rendered: Tokens) -> list[Any]:
        assert isinstance(rendered, AgentSpans)
        return [list(rendered.ids), [list(span or ()) for span in rendered.spans], rendered.truncated]

    def _one_step(self, ids: list[int]) -> Tokens:
        found = super()._one_step(ids)
        if len(found.ids) < 2:
            raise RewardError("there are no two tokens to score, and nothing predicts the first.")
        return AgentSpans(
            found.ids, found.reads, None, found.truncated, cut=found.cut, spans=((1, len(found.ids)),)
        )

    def _located(self, ids: list[int], ends: list[int], kept: Sequence[bool], **details: Any) -> Tokens:
        """ends: of the text before each step that is kept, and of the step."""
        steps = zip(ends[0::2], ends[1::2], strict=True)
        spans = tuple(_span(*next(steps)) if is_kept else None for is_kept in kept)
        reads = tuple(None if span is None else span[1] - 1 for span in spans)
        return AgentSpans(tuple(ids), reads, None, spans=spans, **details)

    def _ids(self, steps: Sequence[Step]) -> tuple[list[int], list[int]]:
        messages = self.dialect.messages(steps)
        try:
            text = self._show(list(chain(*messages)))
            cuts = list(accumulate(chain.from_iterable(self._bounds(text, steps, messages)), max))
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RewardError(
                f"the model's chat template cannot show this trajectory: {error}; give it another template."
            ) from error
        pieces = [self.encode(text[start:end]) for start, end in pairwise([0, *cuts])]
        pieces[0] = self._with_bos(pieces[0]) if pieces[0] or not self._bos else [*self._bos]
        return list(chain(*pieces)), list(accumulate(map(len, pieces)))

    def _bounds(
        self, text: str, steps: Sequence[Step], messages: list[list[Message]]
    ) -> list[tuple[int, int]]:
        """Where in the text each agent step begins and ends."""
        found = []
        for index, step in enumerate(steps):
            if step.source != "agent":
                continue
            own = messages[index]
            place = next(number for number, message in enumerate(own) if message["role"] == "assistant")
            before = [*chain(*messages[:index]), *own[:place]]
            asked = self._show([*before, {"role": "assistant", "content": _MARK}])
            start = _common_length(text, asked[: asked.index(_MARK)])
            end = _common_length(text, self._show([*before, own[place]]).rstrip())
            found.append((start, max(start, end)))
        return found


def _common_length(text: str, other: str) -> int:
    """Of what both begin with; all of `other` where the template is append-only."""
    if text.startswith(other):
        return len(other)
    return next(at for at, (a, b) in enumerate(zip(text, f"{other}\0", strict=False)) if a != b)


def _span(start: int, end: int) -> tuple[int, int]:
    """The first token of all is predicted by none."""
    return max(1, start), max(1, end)
