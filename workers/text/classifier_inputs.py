"""The renderer of classifiers that read a whole text at a time: one input for every place where a value is read.

Forms: `template`, the chat template, as `apply_chat_template` tokenises it; `pair`, a question and an answer, as
`tokenizer(question, answer)` does; `text`, all messages with the names of their roles, as `tokenizer(text)` does.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema import Features, Step, Text, TokenIds
from workers.schema.records import Source
from workers.text.conversations import ConversationRenderer
from workers.text.dialect import Message, in_parts
from workers.text.rendered import Content, UnsharedInput

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TextForm = Literal["template", "pair", "text"]
TEXT_FORMS: tuple[TextForm, ...] = ("template", "pair", "text")
_SPARE = 4  # tokens: a text that was cut may become some more


@dataclass(frozen=True, slots=True)
class ClassifierInput:
    """ids, types: [tokens], as a model takes them."""

    ids: tuple[int, ...]
    types: tuple[int, ...]


@dataclass(frozen=True)
class ClassifierInputs(UnsharedInput):
    """inputs: that of the task alone, if there is one (`start` is then 0), then one for every agent step.

    reads: by agent step, the place in `inputs`.
    """

    inputs: tuple[ClassifierInput, ...]
    reads: tuple[int | None, ...]
    start: int | None
    truncated: bool

    @property
    def tokens(self) -> int:
        return sum(len(each.ids) for each in self.inputs)

    @cached_property
    def key(self) -> bytes:
        said = [[each.ids, each.types] for each in self.inputs]
        text = json.dumps([said, self.reads, self.start, self.truncated])
        return hashlib.blake2b(text.encode(), digest_size=16).digest()


class ClassifierRenderer:
    """tokenizer: a fast one. max_tokens: of one input. Safe to use from any thread."""

    rewrites = True  # an input of the next step is no longer version of this one's
    named_sources: frozenset[Source] = frozenset()
    conditioned = ()

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", max_tokens: int, form: TextForm) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.form = form
        if form != "template":
            tokenizer.chat_template = None
        self._chat = ConversationRenderer(tokenizer, max_tokens)
        self._backend = tokenizer.backend_tokenizer

    def render(self, content: Content, *, task_tokens: int | None = None) -> ClassifierInputs:
        """Raises RewardError for content without text or agent step. task_tokens: not used; each input is cut alone."""
        if isinstance(content, Features):
            raise RewardError(
                "this model reads text; send messages, text or a trajectory.", pointer="/features"
            )
        if isinstance(content, TokenIds):
            ids = tuple(self._chat.checked(content.ids)[: self.max_tokens])
            one = ClassifierInput(ids, (0,) * len(ids))
            return ClassifierInputs((one,), (0,), None, len(content.ids) > len(ids))
        if isinstance(content, Text):
            one, is_cut = self._fitted(content.text)
            return ClassifierInputs((one,), (0,), None, is_cut)
        agent = content.agent_steps
        if not agent:
            raise RewardError("the trajectory has no agent step, so there is nothing to score.")
        messages = self._messages(content.steps[: agent[-1] + 1])
        before = list(chain(*messages[: agent[0]]))
        made = [self._before(before)] if before else []
        made += [self._until(messages, place) for place in agent]
        inputs = tuple(one for one, _ in made)
        first = len(inputs) - len(agent)
        reads = tuple(range(first, len(inputs)))
        return ClassifierInputs(inputs, reads, 0 if first else None, any(is_cut for _, is_cut in made))

    def count(self, text: str) -> int:
        return len(self._backend.encode(text, add_special_tokens=False).ids)

    def model_input(self, rendered: ClassifierInputs) -> list[Any]:
        return [
            [[*each.ids] for each in rendered.inputs],
            [*rendered.reads],
            rendered.start,
            rendered.truncated,
        ]

    def settings(self) -> list[Any]:
        return [self.max_tokens, self.form, self._chat.template, self._backend.to_str()]

    def _messages(self, steps: Sequence[Step]) -> list[list[Message]]:
        return self._chat.dialect.messages(steps)

    def _before(self, messages: list[Message]) -> tuple[ClassifierInput, bool]:
        if self.form == "pair":
            return self._fitted(_joined(messages), "")
        return self._fitted(self.shown(messages))

    def _until(self, messages: list[list[Message]], place: int) -> tuple[ClassifierInput, bool]:
        """The input that ends with the agent step at `place`."""
        before = list(chain(*messages[:place]))
        if self.form != "pair":
            return self._fitted(self.shown([*before, *messages[place]]))
        answer = next((each for each in messages[place] if each["role"] == "assistant"), {"content": ""})
        asked = messages[place][: messages[place].index(answer)] if answer in messages[place] else []
        return self._fitted(_joined([*before, *asked]), str(answer["content"]))

    def shown(self, messages: list[Message]) -> str:
        try:
            return self._chat.shown(in_parts(messages) if self._chat.dialect.parts else messages)
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RewardError(
                f"the model's chat template cannot show this trajectory: {error}; import it with another."
            ) from error

    def _fitted(self, text: str, answer: str | None = None) -> tuple[ClassifierInput, bool]:
        """The input, and whether something of its texts was left out."""
        found = self._encoded(text, answer)
        room, is_cut = self.max_tokens - self._backend.num_special_tokens_to_add(answer is not None), False
        while len(found.ids) > self.max_tokens:
            is_cut = True
            room -= _SPARE
            if room < _SPARE:
                raise RewardError(f"max_tokens = {self.max_tokens} leaves no room for a text; increase it.")
            if answer is None:
                found = self._encoded(self._shorten(text, room), None)
            else:
                answer_room = max(room // 2, room - self.count(text))
                shown = self._shorten(answer, answer_room)
                found = self._encoded(self._shorten(text, max(0, room - self.count(shown))), shown)
        return found, is_cut

    def _encoded(self, text: str, answer: str | None) -> ClassifierInput:
        special = self.form != "template"
        if answer is None:
            encoding = self._backend.encode(text, add_special_tokens=special)
        else:
            encoding = self._backend.encode(text, answer, add_special_tokens=special)
        return ClassifierInput(tuple(encoding.ids), tuple(encoding.type_ids))

    def _shorten(self, text: str, tokens: int) -> str:
        return text if self.count(text) <= tokens else self._chat.shorten(text, tokens)


def _joined(messages: list[Message]) -> str:
    """One message as it is; several with the names of their roles, as the plain template shows them."""
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in messages)
