"""The renderer of imported models: exactly the token ids of `apply_chat_template`, read where their own code reads.

The text of a conversation is tokenised as a whole, with no token added, so that the reward of a conversation is the
number that transformers computes of it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from workers.text.conversations import ConversationRenderer, Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """Where a model is read. skipped: ids that are passed over from the end, as the padding of a classifier is.

    appended: ids that are put after what is read, for that reading only, as the reward token of some models.
    """

    skipped: tuple[int, ...] = ()
    appended: tuple[int, ...] = ()

    def as_json(self) -> dict[str, list[int]]:
        return {"skipped": [*self.skipped], "appended": [*self.appended]}

    @classmethod
    def from_json(cls, found: dict[str, list[int]]) -> "ReadingRule":
        return cls(tuple(found["skipped"]), tuple(found["appended"]))


class WholeConversationRenderer(ConversationRenderer):
    """Speakers are not named: the model has never seen their names."""

    def __init__(
        self, tokenizer: "PreTrainedTokenizerBase", max_tokens: int, rule: ReadingRule = ReadingRule()
    ) -> None:
        self.rule = rule
        super().__init__(tokenizer, max_tokens - len(rule.appended))

    def settings(self) -> list[Any]:
        return [*super().settings(), self.rule.as_json()]

    def _tokenized(self, text: str, cuts: list[int]) -> tuple[list[int], list[int]]:
        encoding = self._backend.encode(text, add_special_tokens=False)
        ids = list(encoding.ids)
        ends = list(accumulate((end for _, end in encoding.offsets), max))
        tokens = [bisect_right(ends, cut) for cut in cuts[:-1]]
        return ids, [self._last_read(ids, end) for end in (*tokens, len(ids))]

    def _one_step(self, ids: list[int]) -> Tokens:
        found = super()._one_step(ids)
        return replace(found, reads=(self._last_read(found.ids, len(found.ids)) - 1,))

    def _last_read(self, ids: Sequence[int], end: int) -> int:
        """The end of what is read of `ids[:end]`."""
        while end > 1 and ids[end - 1] in self.rule.skipped:
            end -= 1
        return end
