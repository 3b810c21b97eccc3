"""What a language model is asked about one run or two of them, as tokens, and the words it answers with.

The answer is a critique, the mark "Verdict:", and a word. The verdict is how likely each of two words is after the
mark, read where their tokens part.
"""

import hashlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workers.errors import RewardError
from workers.prompts.templates import Prompt, prompt, quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Features, Part, Step, Task, Text, TokenIds, Trajectory
from workers.schema.conditions import OPPOSITE, opposite
from workers.text import Content, ConversationRenderer
from workers.text.rendered import UnsharedInput

MARK = "Verdict:"
_LEAST = 400  # characters of a run, below which nothing is worth reading


@dataclass(frozen=True, slots=True)
class Words:
    """The verdict for and against. before: tokens they begin with alike. yes_id, no_id: the first that differ."""

    yes: str
    no: str
    before: tuple[int, ...]
    yes_id: int
    no_id: int


@dataclass(frozen=True)
class VerdictPrompt(UnsharedInput):
    """ids: the prompt, up to where the model's answer begins. reads: by agent step of the (first) run; the verdict is
    on the whole, so it is read for the last only. truncated: something of a run was left out. is_pair: two are asked
    about, and the words are A and B rather than good and bad. runs: what it was made of, where the same may be asked by
    other principles."""

    ids: tuple[int, ...]
    reads: tuple[int | None, ...]
    truncated: bool
    is_pair: bool = False
    runs: tuple[Trajectory, ...] = field(default=(), compare=False, repr=False)

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @cached_property
    def key(self) -> bytes:
        read = array("q", (len(self.reads), *self.ids)).tobytes()
        # By another principle there may be room for other parts of it.
        whole = [run.content_hash.encode() for run in self.runs if self.truncated]
        return hashlib.blake2b(b"".join((read, *whole)), digest_size=16).digest()


class VerdictRenderer:
    """conversations: of the same tokenizer. critique_tokens: what is kept free for the answer.

    criterion: what is judged by where no principle is given; None: overall. principles: whether some will be, so that
    what is asked keeps its runs. Safe to use from any thread.
    """

    rewrites = False
    compares = True
    conditioned = ()
    mark = MARK
    before_verdict = " "

    def __init__(
        self,
        conversations: ConversationRenderer,
        *,
        critique_tokens: int,
        criterion: str | None = None,
        principles: bool = False,
    ) -> None:
        self.tokenizer = conversations.tokenizer
        self.template = conversations.template
        self.max_tokens = conversations.max_tokens
        self.named_sources = conversations.named_sources
        self.critique_tokens = critique_tokens
        self.criterion = criterion
        self.principles = principles
        self._conversations = conversations
        self.mark_ids = conversations.encode(self.mark)
        of_run, of_pair = self._verdict_words()
        self.of_pair = self._words(*of_pair)
        self.of_run = self._words(*of_run)
        after = max(len(words.before) for words in (self.of_pair, self.of_run)) + 1
        self.room = self.max_tokens - critique_tokens - len(self.mark_ids) - after

    @property
    def prompts(self) -> list[str]:
        """Names, versions and hashes of the files they are made of."""
        return [prompt("verdict_run", by="", run="").of, prompt("verdict_pair", by="", a="", b="").of]

    def render(self, content: Content, *, by: str | None = None) -> VerdictPrompt:
        """The question about one run. by: a principle, in words.

        Raises RewardError for what has no agent step or cannot be shown.
        """
        run, line = content_trajectory(content), self._line(by)
        return self._fitted([run], lambda run: prompt("verdict_run", by=line, run=run))

    def pair(self, a: Content, b: Content, *, by: str | None = None) -> VerdictPrompt:
        """The question which is better, in this order."""
        runs, line = [content_trajectory(a), content_trajectory(b)], self._line(by)
        return self._fitted(runs, lambda a, b: prompt("verdict_pair", by=line, a=a, b=b))

    def words(self, prompt: VerdictPrompt) -> Words:
        return self.of_pair if prompt.is_pair else self.of_run

    def verdict(self, prompt: VerdictPrompt, log_prob: Callable[[int], float]) -> float:
        """What the answer is worth: the log-odds of the word for. log_prob: of a token where the words part."""
        words = self.words(prompt)
        return log_prob(words.yes_id) - log_prob(words.no_id)

    def critique_ids(self, text: str) -> list[int]:
        """What someone wrote, as the model is to write it: a line before the mark, no longer than there is room."""
        text = text.strip().replace(self.mark, self.mark.removesuffix(":"))
        ids = self._conversations.encode(f"{text}\n") if text else []
        if len(ids) <= self.critique_tokens:
            return ids
        return self._conversations.encode(f"{self.text(ids[: self.critique_tokens - 2]).rstrip()}\n")

    def text(self, ids: Sequence[int]) -> str:
        said = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        assert isinstance(said, str)
        return said

    def count(self, text: str) -> int:
        return self._conversations.count(text)

    def model_input(self, prompt: VerdictPrompt) -> list[Any]:
        return [list(prompt.ids), list(prompt.reads), prompt.truncated]

    def settings(self) -> list[Any]:
        return [[self.critique_tokens, self.criterion], *self._conversations.settings()]

    def _line(self, by: str | None) -> str:
        by = self.criterion if by is None else by
        return "" if by is None else f"Judge by this alone: {quoted(by)}\n"

    def _verdict_words(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """For and against: of one run, and of a pair."""
        return ("good", "bad"), ("A", "B")

    def _verdict_ids(self, word: str) -> list[int]:
        return self._conversations.encode(f"{self.before_verdict}{word}")

    def _fitted(self, runs: list[Trajectory], ask: Callable[..., Prompt]) -> VerdictPrompt:
        """With as many characters of the runs as there is room for."""
        return self._fitted_question(runs, lambda *shown: ask(*shown[len(runs) + 1 :]))

    def _fitted_question(self, runs: list[Trajectory], ask: Callable[..., Prompt]) -> VerdictPrompt:
        """ask: of the runs, the characters that each may have, and each as JSON lines of so many."""
        characters, whole = 1 << 24, True
        while True:
            texts = [
                shown(run, characters=characters, with_speakers=bool(self.named_sources)) for run in runs
            ]
            ids = self._conversations.question(_steps(ask(*runs, characters, *texts)))
            if len(ids) <= self.room:
                agent = runs[0].agent_steps
                reads = (*[None] * (len(agent) - 1), len(ids) - 1)
                kept = tuple(runs) if self.principles else ()
                return VerdictPrompt(tuple(ids), reads, not whole, len(runs) == 2, kept)
            longest = max(map(len, texts))
            if min(characters, longest) <= _LEAST:
                raise RewardError(
                    f"max_tokens = {self.max_tokens} leaves no room for the trajectories next to the question "
                    f"and a critique of {self.critique_tokens} tokens; raise it."
                )
            over = len(ids) / self.room
            characters, whole = max(_LEAST, int(min(characters, longest) / over * 0.95)), False

    def _words(self, yes: str, no: str) -> Words:
        ids = [self._verdict_ids(word) for word in (yes, no)]
        alike = next((at for at, (a, b) in enumerate(zip(*ids, strict=False)) if a != b), None)
        if alike is None:
            raise RewardError(
                f"the decoder's tokenizer cannot tell {yes!r} from {no!r}, so no verdict can be read; use a model of "
                "another vocabulary."
            )
        return Words(yes, no, tuple(ids[0][:alike]), ids[0][alike], ids[1][alike])


def principle(name: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    """In words: of a criterion's name its text, of the opposite of one the opposite of its text, else as it is."""
    if name in known:
        return str(known[name]["text"])
    of = name.removeprefix(OPPOSITE)
    return opposite(str(known[of]["text"])) if of != name and of in known else name


def content_trajectory(content: Content) -> Trajectory:
    if isinstance(content, Text):
        said = Step(source="agent", message=(Part(text=content.text),))
        return Trajectory(steps=(said,), task=Task(id=""))
    if isinstance(content, TokenIds):
        raise RewardError(
            "this model is asked about what it reads, so ids that are no question mean nothing to it; send messages, "
            "text or a trajectory.",
            pointer="/input_ids",
        )
    if isinstance(content, Features):
        raise RewardError("this model reads text; send messages, text or a trajectory.", pointer="/features")
    if not content.agent_steps:
        raise RewardError("the trajectory has no agent step, so there is nothing to judge.")
    return content


def _steps(question: Prompt) -> list[Step]:
    return [
        Step(source=message["role"], message=(Part(text=message["content"]),))  # type: ignore[arg-type]
        for message in question.messages
    ]
