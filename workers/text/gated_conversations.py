"""The renderer of models whose attributes are weighed by the end of the prompt: it also finds where that is."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from workers.text.conversations import Tokens
from workers.text.rendered import Content
from workers.text.whole_conversations import ReadingRule, WholeConversationRenderer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_USER, _AGENT = "\ue123", "\ue124"  # private characters, to find what a template writes between two messages


@dataclass(frozen=True)
class GatedTokens(Tokens):
    """gates: for each of `places`, where the prompt before it ends."""

    gates: tuple[int, ...] = ()


class GatedConversationRenderer(WholeConversationRenderer):
    """gate: ids of what stands between a message of the user and the agent's. The prompt of a step ends at the first
    of them, where they occur last before the step's end (as the published code of ArmoRM looks for them)."""

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        max_tokens: int,
        rule: ReadingRule,
        gate: Sequence[int],
    ) -> None:
        self.gate = tuple(gate)
        super().__init__(tokenizer, max_tokens, rule)

    def settings(self) -> list[Any]:
        return [*super().settings(), [*self.gate]]

    def render(self, content: Content, *, task_tokens: int | None = None) -> GatedTokens:
        """Text without the agent's turn is weighed at its first token."""
        found = super().render(content, task_tokens=task_tokens)
        values = {field.name: getattr(found, field.name) for field in fields(found)}
        gates = [self._gate_before(found.ids, place) for place in found.places]
        if found.start is not None:
            gates[0] = found.start
        return GatedTokens(**values, gates=tuple(gates))

    def _gate_before(self, ids: tuple[int, ...], place: int) -> int:
        length = len(self.gate)
        starts = range(place + 1 - length, -1, -1)
        return next((start for start in starts if ids[start : start + length] == self.gate), 0)


def gate_ids(renderer: WholeConversationRenderer) -> list[int]:
    """What its template writes between a message of the user and the answer."""
    messages = [{"role": "user", "content": _USER}, {"role": "assistant", "content": _AGENT}]
    text = renderer.shown(messages)
    between = text[text.index(_USER) + 1 : text.index(_AGENT)]
    ids: list[int] = renderer.tokenizer.backend_tokenizer.encode(between, add_special_tokens=False).ids
    return ids
