"""The renderer of the decoders: a trajectory as the token ids of a chat template, and where values are read.

Append-only wherever the template is: each piece (the task, then one for every agent step) is tokenised on its own, so
what a step renders to never changes when the next one comes. Templates that rewrite earlier turns are rendered whole.
"""

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import TemplateError

from workers.errors import RewardError
from workers.schema import Features, Part, Step, Task, Text, TokenIds, ToolCall, Trajectory
from workers.schema.conditions import TITLES, Condition, conditions_read
from workers.schema.records import Source
from workers.text.bounded_templates import render_chat
from workers.text.dialect import Dialect, Message, in_parts
from workers.text.fitting import fit
from workers.text.rendered import Content, Session
from workers.text.segments import GAP_TEXT
from workers.text.speakers import ALL_SOURCES, with_names

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# For tokenizers that come without a template.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content }}"
    "{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n\\n' }}{% endfor %}"
)
# A template that tells the date would render otherwise tomorrow.
_SAME_DAY = "{%- macro strftime_now(form) -%}26 Jul 2024{%- endmacro -%}"
_MARK = "\ue123"  # a private character, put into a copy of a message to find where the message ends
_FAMILY = 32  # common first tokens from which inputs share a tree
_LEAST = 32  # tokens below which nothing is worth reading


@dataclass(frozen=True)
class Tokens:
    """ids as the model reads them. start: where the baseline is read, None if nothing precedes the agent.

    cut: tokens that were left out. task_room: what the task was cut to, if it was.
    """

    ids: tuple[int, ...]
    reads: tuple[int | None, ...]
    start: int | None
    truncated: bool
    session: Session | None = None
    cut: int = 0
    task_room: int | None = None

    @property
    def places(self) -> list[int]:
        """Where the model is read: the baseline, if there is one, then every kept step."""
        reads = [read for read in self.reads if read is not None]
        return reads if self.start is None else [self.start, *reads]

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @cached_property
    def key(self) -> bytes:
        numbers = array("q", (-1 if self.start is None else self.start, self.truncated, len(self.reads)))
        numbers.extend(-1 if read is None else read for read in self.reads)
        numbers.extend(self.ids)
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).digest()

    @property
    def family(self) -> bytes:
        """Those with the same beginning; growing ones are computed by themselves, from where they were left."""
        return array("q", self.ids[:_FAMILY]).tobytes() if self.session is None else b""

    def shared(self, other: "Tokens") -> int:
        pairs = enumerate(zip(self.ids, other.ids, strict=False))
        return next(
            (place for place, (pair, two) in pairs if pair != two), min(len(self.ids), len(other.ids))
        )


class ConversationRenderer:
    """tokenizer: a fast one. names_speakers: whether the message of a step begins with the name of its speaker, where
    it has one. template: in place of the tokenizer's. conditioned: which conditions are read; they stand in a message
    before the first of the agent. Safe to use from any thread."""

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        max_tokens: int,
        *,
        names_speakers: bool = False,
        template: str | None = None,
        conditioned: tuple[Condition, ...] = (),
    ) -> None:
        if not tokenizer.is_fast:
            raise RewardError(
                "the decoder's tokenizer has no tokenizer.json; save a fast one with the model."
            )
        if template is None and isinstance(tokenizer.chat_template, dict):
            raise RewardError(
                "the decoder has several chat templates; keep the one to use in chat_template.jinja."
            )
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.names_speakers = names_speakers
        self.conditioned = conditioned
        self.named_sources: frozenset[Source] = ALL_SOURCES if names_speakers else frozenset()
        self.template: str = template or tokenizer.chat_template or PLAIN_TEMPLATE
        self._backend = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self._bos = self._added_bos()
        self._anchor = self._needed_anchor()
        self.dialect = self._dialect()
        self.rewrites = self._is_rewriting()

    def render(self, content: Content, *, task_tokens: int | None = None) -> Tokens:
        """Raises RewardError for content without text or agent step, and for ids outside the vocabulary.

        task_tokens: at most so many for the task of a trajectory.
        """
        if isinstance(content, Features):
            raise RewardError(
                "this model reads text; send messages, text or a trajectory.", pointer="/features"
            )
        if isinstance(content, TokenIds):
            return self._one_step(self.checked(content.ids))
        if isinstance(content, Text):
            return self._one_step(self._with_bos(self.encode(self._closed(content.text))))
        if not content.agent_steps:
            raise RewardError("the trajectory has no agent step, so there is nothing to score.")
        shown = with_names(content) if self.names_speakers else content
        return self._conversation(_with_conditions(shown, self.conditioned), task_tokens)

    def question(self, steps: Sequence[Step]) -> list[int]:
        """The ids of what precedes the agent's next word, after these steps."""
        asked = [*steps, Step(source="agent", message=(Part(text=_MARK),))]
        try:
            text = self._show(list(chain(*self.dialect.messages(asked))))
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RewardError(f"the decoder's chat template cannot show this question: {error}.") from error
        return self._with_bos(self.encode(text[: text.rindex(_MARK)]))

    def encode(self, text: str) -> list[int]:
        """Its ids as it would be after a special token: some tokenizers treat the beginning of a text otherwise."""
        if not text:
            return []
        ids: list[int] = self._backend.encode(self._anchor + text, add_special_tokens=False).ids
        return ids[1:] if self._anchor else ids

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def model_input(self, rendered: Tokens) -> list[Any]:
        return [list(rendered.ids), list(rendered.reads), rendered.start, rendered.truncated]

    def settings(self) -> list[Any]:
        return [self.max_tokens, self.template, self._backend.to_str()]

    def closing_ids(self) -> set[int]:
        """What agent steps end with."""
        probe_messages = Step(source="user", message=(Part(text="Hello."),))
        rendered = self.render(
            Trajectory(
                steps=(probe_messages, msgspec.structs.replace(probe_messages, source="agent")),
                task=Task(id=""),
            )
        )
        return {rendered.ids[read] for read in rendered.reads if read is not None}

    def _conversation(self, trajectory: Trajectory, task_tokens: int | None) -> Tokens:
        agent = trajectory.agent_steps
        steps = trajectory.steps[: agent[-1] + 1]  # nothing is read after the last agent step
        places: list[int | None] = list(range(len(steps)))
        ids, ends = self._ids(steps)
        size, room, task_room = len(ids), self.max_tokens, None
        is_limited = task_tokens is not None
        while len(ids) > self.max_tokens or is_limited:
            if room < _LEAST:
                raise RewardError(
                    f"max_tokens = {self.max_tokens} leaves no room for the chat template; increase it."
                )
            fitted = fit(steps, room, self.count, self.shorten, task_tokens)
            places, task_room = [place for place, _ in fitted.kept], fitted.task_room
            ids, ends = self._ids([step for _, step in fitted.kept])
            room -= max(8, len(ids) - self.max_tokens)
            is_limited = False
        kept = {place for place in places if place in agent}
        return self._located(
            ids,
            ends,
            [place in kept for place in agent],
            truncated=size > len(ids),
            cut=max(0, size - len(ids)),
            task_room=task_room,
        )

    def _located(self, ids: list[int], ends: list[int], kept: Sequence[bool], **details: Any) -> Tokens:
        """ends: as `_ids` gives them. kept: by agent step, whether it was."""
        steps = iter(ends[1:])
        reads = tuple(next(steps) - 1 if is_kept else None for is_kept in kept)
        return Tokens(tuple(ids), reads, ends[0] - 1 if ends[0] else None, **details)

    def _ids(self, steps: Sequence[Step]) -> tuple[list[int], list[int]]:
        """Token ids, and where they end: of what precedes the first agent step, then of every agent step."""
        messages = self.dialect.messages(steps)
        closed = [place + 1 for place, step in enumerate(steps) if step.source == "agent"]
        try:
            text = self._show(list(chain(*messages)))
            cuts = self._cuts(text, messages, closed)
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RewardError(
                f"the decoder's chat template cannot show this trajectory: {error}; give it another template."
            ) from error
        return self._tokenized(text, cuts)

    def _tokenized(self, text: str, cuts: list[int]) -> tuple[list[int], list[int]]:
        """The ids of the text, and how many of them stand before each cut; the last cut is the end of the text."""
        pieces = [self.encode(text[start:end]) for start, end in pairwise([0, *cuts])]
        pieces[0] = self._with_bos(pieces[0]) if pieces[0] or not self._bos else pieces[0]
        if not pieces[0]:
            pieces[1] = self._with_bos(pieces[1])
        return list(chain(*pieces)), list(accumulate(map(len, pieces)))

    def _cuts(self, text: str, messages: list[list[Message]], closed: list[int]) -> list[int]:
        """Where in `text` the task ends, then every agent step, the last at its end."""
        before = list(chain(*messages[: closed[0] - 1]))
        shown = [self._before(before)] + [self._show(list(chain(*messages[:end]))) for end in closed[:-1]]
        if all(map(text.startswith, shown)):
            return [*map(len, shown), len(text)]
        starts = _shared(shown[0], text)
        ends = [self._end_in(text, messages, end) for end in closed[:-1]]
        return list(accumulate([starts, *ends, len(text)], max))

    def _before(self, messages: list[Message]) -> str:
        try:
            return self._show(messages) if messages else ""
        except (TemplateError, TypeError, KeyError, ValueError, IndexError):
            return ""  # this template shows no task without an answer: there is no baseline

    def _end_in(self, text: str, messages: list[list[Message]], end: int) -> int:
        """Where step `end - 1` ends in a text whose template rewrites: what follows a change in it stays as it is."""
        *first, last = messages[end - 1]
        changed = [*messages[: end - 1], [*first, _marked(last)], *messages[end:]]
        other = self._show(list(chain(*changed)))
        return len(text) - _shared(text[::-1], other[::-1])

    def _show(self, messages: list[Message]) -> str:
        return self.shown(in_parts(messages) if self.dialect.parts else messages)

    def shown(self, messages: list[Message]) -> str:
        """Raises TemplateError, whatever goes wrong in the template."""
        return render_chat(self.tokenizer, _SAME_DAY + self.template, messages)

    def _dialect(self) -> Dialect:
        return Dialect.of(self.shown, self._special())

    def _special(self) -> list[str]:
        """Texts that content must not contain."""
        return [str(token) for token in self.tokenizer.all_special_tokens if len(str(token)) > 1]

    def _is_rewriting(self) -> bool:
        probe_messages = [
            ("user", "One?"),
            ("agent", "One."),
            ("user", "Two?"),
            ("agent", "Two."),
            ("agent", "Three."),
        ]
        steps = [Step(source=source, message=(Part(text=text),)) for source, text in probe_messages]  # type: ignore[arg-type]
        call = ToolCall(name="look", arguments={"at": "it"}, id="c")
        steps[1] = Step(source="agent", reasoning="Easy.", message=(Part(text="One."),))
        steps[3] = Step(source="agent", reasoning="Let me see.", tool_calls=(call,))
        messages = self.dialect.messages(steps)
        try:
            text = self._show(list(chain(*messages)))
            ends = [self._show(list(chain(*messages[:end]))) for end in (2, 4)]
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise RewardError(f"the decoder's chat template shows no conversation: {error}.") from error
        return not all(map(text.startswith, ends))

    def _closed(self, text: str) -> str:
        """A text that ends with the mark of a closed turn, with the whitespace that the template writes after it: the
        value is read at the last token."""
        mark = self._closing.rstrip()
        return text + self._closing[len(mark) :] if mark and text.endswith(mark) else text

    @cached_property
    def _closing(self) -> str:
        """What the template writes after the agent's words."""
        try:
            text = self._show(
                [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": _MARK}]
            )
        except (TemplateError, TypeError, KeyError, ValueError):
            return ""
        return text.rpartition(_MARK)[2]

    def _one_step(self, ids: list[int]) -> Tokens:
        """Text and ids: one agent step. Too long: its middle goes, so that the beginning and the end are read."""
        size = len(ids)
        truncated = size > self.max_tokens
        if truncated:
            gap = self.encode(GAP_TEXT)
            half = (self.max_tokens - len(gap)) // 2
            ids = [*ids[:half], *gap, *ids[len(ids) - (self.max_tokens - len(gap) - half) :]]
        if not ids:
            raise RewardError("there is no text to score, and this model's tokenizer adds nothing to it.")
        return Tokens(tuple(ids), (len(ids) - 1,), None, truncated, cut=size - len(ids))

    def checked(self, ids: tuple[int, ...]) -> list[int]:
        """Raises RewardError for ids outside the vocabulary."""
        size = self._backend.get_vocab_size()
        bad = next((place for place, id_ in enumerate(ids) if not 0 <= id_ < size), None)
        if bad is not None:
            raise RewardError(
                f"token id {ids[bad]} is outside this model's vocabulary of {size}.",
                pointer=f"/input_ids/{bad}",
            )
        return list(ids)

    def _with_bos(self, ids: list[int]) -> list[int]:
        return [*self._bos, *ids] if self._bos and ids[:1] != self._bos else ids

    def _added_bos(self) -> list[int]:
        """The tokens the tokenizer adds before a text; a template that has them too does not double them."""
        bos = self.tokenizer.bos_token_id
        begins: list[int] = self._backend.encode("a", add_special_tokens=True).ids[:1]
        return begins if bos is not None and begins == [bos] else []

    def _needed_anchor(self) -> str:
        anchor = str(self.tokenizer.eos_token or self.tokenizer.bos_token or "")
        plain, after = (
            self._backend.encode(text, add_special_tokens=False).ids for text in ("a", anchor + "a")
        )
        return "" if not anchor or after[1:] == plain or len(after) < 2 else anchor

    def shorten(self, text: str, tokens: int) -> str:
        """The first and last of its tokens, about `tokens` of them, the gap marked."""
        offsets = self._backend.encode(text, add_special_tokens=False).offsets
        half = max(0, tokens - self.count(GAP_TEXT)) // 2
        if half == 0:
            return GAP_TEXT
        return f"{text[: offsets[half - 1][1]]} {GAP_TEXT} {text[offsets[-half][0] :]}"


def _with_conditions(trajectory: Trajectory, conditioned: Sequence[Condition]) -> Trajectory:
    found = conditions_read(trajectory, conditioned)
    if not found:
        return trajectory
    text = "\n\n".join(f"{TITLES[name]}:\n{text}" for name, text in found)
    place, steps = trajectory.agent_steps[0], trajectory.steps
    told = Step(source="user", message=(Part(text=text),))
    return msgspec.structs.replace(trajectory, steps=(*steps[:place], told, *steps[place:]))


def _marked(message: Message) -> Message:
    """The message with something more at its end."""
    if not message.get("tool_calls"):
        return message | {"content": message["content"] + _MARK}
    *calls, last = message["tool_calls"]
    function = last["function"]
    function = function | {"arguments": function["arguments"] | {_MARK: _MARK}}
    return message | {"tool_calls": [*calls, last | {"function": function}]}


def _shared(first: str, second: str) -> int:
    """The length of the common prefix of two texts."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
