"""The renderer of process reward models that come from elsewhere: agent steps with a separator where they are read.

A step is an agent step of the trajectory. What the agent calls is written into the text of its step and what it gets
back follows as a message of the user, since the separator stands at the end of what the agent did. Nothing is rendered
behind the place where the last step is read: these models are causal, so it could not change what is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema import Features, Part, Step, Text, TokenIds
from workers.text.conversations import PLAIN_TEMPLATE, ConversationRenderer, Tokens
from workers.text.dialect import Dialect, Message
from workers.text.rendered import Content
from workers.text.step_format import StepFormat

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PLACE = "\ue124\ue124"  # private characters where a step is read, replaced by the separator
_JOINT = "\n\n"  # between the messages of a task that is shown as plain text


class StepRenderer(ConversationRenderer):
    """steps: the form that the model was trained on. Safe to use from any thread."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", max_tokens: int, steps: StepFormat) -> None:
        self.steps = steps
        super().__init__(tokenizer, max_tokens, template=PLAIN_TEMPLATE if steps.layout == "plain" else None)

    def render(self, content: Content, *, task_tokens: int | None = None) -> Tokens:
        """As `ConversationRenderer.render`. A text is one step without a task, which gets its separator unless it has
        one; token ids are scored as they are, read at their end."""
        if isinstance(content, Text):
            text = content.text.removesuffix(self.steps.separator)
            return self._one_step([*self._with_start(self._piece(text)), *self._separator_ids])
        if isinstance(content, TokenIds | Features):
            return super().render(content)
        return super().render(content, task_tokens=task_tokens)

    def settings(self) -> list[Any]:
        return [*super().settings(), self.steps.to_dict()]

    @property
    def _separator_ids(self) -> list[int]:
        return self._piece(self.steps.separator)

    def _dialect(self) -> Dialect:
        """Calls and reasoning become text of their step."""
        return replace(super()._dialect(), tools=False, reasoning=False)

    def _special(self) -> list[str]:
        """What separates steps cannot be written by an agent."""
        tag = self.steps.separator.strip()
        return [*super()._special(), _PLACE, *([tag] if len(tag) > 1 else [])]

    def _is_rewriting(self) -> bool:
        """Whether what a step renders to changes when the next one comes."""
        said = [
            ("user", "One?"),
            ("agent", "One."),
            ("agent", "Two."),
            ("user", "Three?"),
            ("agent", "Three."),
        ]
        steps = [Step(source=source, message=(Part(text=text),)) for source, text in said]  # type: ignore[arg-type]
        found = [self._ids(steps[:end])[0] for end in (2, 3, 5)]
        return any(found[-1][: len(ids)] != ids for ids in found)

    def _ids(self, steps: Sequence[Step]) -> tuple[list[int], list[int]]:
        """Token ids up to where the last agent step is read, and behind which token each one is; 0 for what precedes
        them, where these models are not read."""
        try:
            text = self._marked_text(steps)
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RewardError(
                f"the model's chat template cannot show this trajectory: {error}; give it another template."
            ) from error
        pieces = text.split(_PLACE)[:-1]
        if self.steps.whole:
            return self._ids_of_whole(pieces)
        parts = [self._piece(piece) for piece in pieces]
        if self.steps.layout == "plain":
            # the task is a piece by itself, however the first step begins
            task = self._piece(self._task_text(steps))
            first = self._piece(pieces[0].removeprefix(self._task_text(steps)))
            parts[0] = [*task, *first]
        parts[0] = self._with_start(parts[0])
        parts = [[*part, *self._separator_ids] for part in parts]
        return list(chain(*parts)), [0, *accumulate(map(len, parts))]

    def _ids_of_whole(self, pieces: Sequence[str]) -> tuple[list[int], list[int]]:
        """Of a text in one piece: a step is read at the token that its separator ends with."""
        text = "".join(f"{piece}{self.steps.separator}" for piece in pieces)
        ends = list(accumulate(len(piece) + len(self.steps.separator) for piece in pieces))
        encoded = self._backend.encode(text, add_special_tokens=False)
        starts = [start for start, _ in encoded.offsets]
        behind = [sum(start < end for start in starts) for end in ends]
        ids = self._with_start(list(encoded.ids))
        shift = len(ids) - len(encoded.ids)
        return ids, [0, *(place + shift for place in behind)]

    def _piece(self, text: str) -> list[int]:
        """Without a template a text is tokenised as it stands; within one, as after a special token."""
        if self.steps.layout != "plain":
            return self.encode(text)
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids if text else []
        return ids

    def _with_start(self, ids: list[int]) -> list[int]:
        """With the token that begins a text, where the tokenizer has one."""
        bos = self.tokenizer.bos_token_id
        if self.steps.layout != "plain":
            return self._with_bos(ids)
        return ids if bos is None or ids[:1] == [bos] else [bos, *ids]

    def _marked_text(self, steps: Sequence[Step]) -> str:
        """The text with _PLACE wherever a step is read."""
        messages = self.dialect.messages(steps)
        if self.steps.layout == "plain":
            return self._plain_text(steps)
        if self.steps.layout == "turns":
            return self._show(list(self._turns(steps)))
        merged: list[Message] = []
        agent = [index for index, step in enumerate(steps) if step.source == "agent"]
        for index, own in enumerate(messages):
            for message in own:
                is_step = message["role"] == "assistant" and index in agent
                shown = message | {"content": f"{message['content']}{_PLACE}"} if is_step else dict(message)
                if is_step and merged and merged[-1]["role"] == "assistant":
                    merged[-1]["content"] += shown["content"]
                else:
                    merged.append(shown)
        return self._show(merged)

    def _turns(self, steps: Sequence[Step]) -> Iterator[Message]:
        """What precedes a step begins its message; a template that shows them gets system messages as such."""
        before: list[str] = []
        is_first = True
        for step in steps:
            own, *results = [message["content"] for message in self._own_messages(step)] or [""]
            if step.source == "system" and self.dialect.system and not before and is_first:
                yield {"role": "system", "content": own}
            elif step.source != "agent":
                before += [own, *results]
            else:
                joint = " " if is_first else "\n"
                yield {
                    "role": "user",
                    "content": joint.join([*([_JOINT.join(before)] if before else []), own]),
                }
                yield {"role": "assistant", "content": f"{_PLACE}{self.steps.answer}"}
                before, is_first = results, False

    def _plain_text(self, steps: Sequence[Step]) -> str:
        parts = [self._task_text(steps)]
        between: list[str] = []
        count = 0
        first = next(index for index, step in enumerate(steps) if step.source == "agent")
        for step in steps[first:]:
            own, *results = [message["content"] for message in self._own_messages(step)] or [""]
            if step.source != "agent":
                between += [own, *results]
                continue
            count += 1
            parts += [self.steps.after_step] if count > 1 else []
            parts += [f"{text}\n" for text in between]
            start = self.steps.before_step.replace("{n}", str(count))
            parts += [] if own.startswith(start) else [start]
            parts += [own, _PLACE]
            between = results
        return "".join(parts)

    def _task_text(self, steps: Sequence[Step]) -> str:
        first = next(index for index, step in enumerate(steps) if step.source == "agent")
        texts = [message["content"] for step in steps[:first] for message in self._own_messages(step)]
        return f"{_JOINT.join(texts)}{self.steps.after_task}" if texts else ""

    def _own_messages(self, step: Step) -> list[Message]:
        """Of one step, whoever has the turn."""
        return replace(self.dialect, free_turns=True, system=True).messages([step])[0]
