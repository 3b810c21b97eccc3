"""Named features of each agent step that need no model: lengths, failures, repetition, overlap with the context, form.

The features of a step depend on it, with its observations, and on what came before it. They are made to be added over
steps: what a step does adds to the sum of its trajectory, what it does not do adds 0.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workers.schema import Step, Trajectory
from workers.schema.part_text import parts_text
from workers.text.overlap import COUNTED, MessageWords, Overlap, share
from workers.text.overlap import NAMES as _OVERLAP
from workers.text.phrases import FAILURES, NO_FAILURE, PHRASES, SYMBOLS, PhraseCounter, count_matches

MAX_CHARACTERS = 2**20  # read of each message, reasoning, call and observation
NAMES: tuple[str, ...] = (
    *("bias", "first", "place", "speaks", "empty"),
    *("words", "reasoning_words", "heard_words", "observation_words"),
    *("calls", "argument_words", "sentences", "sentence_words", "lines", "word_length", "uppercase_words"),
    *("number_share", "non_ascii", "unfinished", "ends_with_question", "intent_without_call"),
    *(f"observation_{name}" for name in FAILURES),
    *("observation_failed", "observation_empty", "failures_in_a_row", "retried_failure", "heard_failed"),
    *("call_repeated", "tool_repeated", "message_repeated", "observation_repeated"),
    *_OVERLAP,
    *PHRASES,
    *SYMBOLS,
)
"""Flags are 0 or 1, shares 0..1, counts min(1, log2(1 + n) / 3), lengths log(1 + n) / 8, which is below 2."""

_MOST = 7  # matches, from which a count is 1
_CLOSED = frozenset(".!?…。！？:;)]}>*`\"'”’")  # the last character of a finished message
_PLACES = {name: place for place, name in enumerate(NAMES)}
_COUNTS = [math.log2(1 + count) / math.log2(1 + _MOST) for count in range(_MOST + 1)]
_PHRASE_COUNTER, _FAILURE_COUNTER = PhraseCounter(PHRASES), PhraseCounter(FAILURES)
_Row = dict[str, float]


def structure(trajectory: Trajectory) -> NDArray[np.float32]:
    """[agent steps, NAMES]. Time and memory grow linearly with the text, but for the sorting of n-grams."""
    reader = _Reader()
    for step in trajectory.steps:
        reader.read(step)
    out = np.array([[row.get(name, 0.0) for name in NAMES] for row in reader.rows], dtype=np.float32)
    out = out.reshape(len(reader.rows), len(NAMES))
    for name, values in reader.overlap.features().items():
        if name in COUNTED:
            values = np.minimum(1.0, np.log2(1 + values) / math.log2(1 + _MOST))
        out[:, _PLACES[name]] = values
    return out


class _Reader:
    """rows: by agent step, its features without those of overlap. Heard: what others wrote since the last one."""

    def __init__(self) -> None:
        self.overlap = Overlap()
        self.rows: list[_Row] = []
        self._heard_words = 0
        self._heard_failed = False
        self._calls: set[tuple[str, str]] = set()
        self._tools: set[str] = set()
        self._messages: set[str] = set()
        self._observations: set[str] = set()
        self._failed_tools: set[str] = set()
        self._failures = 0

    def read(self, step: Step) -> None:
        message = parts_text(step.message)[:MAX_CHARACTERS]
        seen = [parts_text(result.content)[:MAX_CHARACTERS] for result in step.observation]
        if step.source == "agent":
            calls = [(call.name, call.arguments_text[:MAX_CHARACTERS]) for call in step.tool_calls]
            self._read_agent(message, (step.reasoning or "")[:MAX_CHARACTERS], calls, seen)
            return
        for text in filter(None, (message, *seen)):
            words = self.overlap.read_given(text)
            if (
                self.rows
            ):  # what stands before the first agent step is the task, and the same for all that try it
                self._heard_words += words
                self._heard_failed |= any(_failures(text).values())

    def _read_agent(
        self, message: str, reasoning: str, calls: Sequence[tuple[str, str]], seen: Sequence[str]
    ) -> None:
        has_message, arguments = bool(message.strip()), [written for _, written in calls]
        words = self.overlap.read_agent(message, arguments)
        row = {
            "bias": 1.0,
            "first": float(not self.rows),
            "place": _length(len(self.rows)),
            "speaks": float(has_message),
            "empty": float(not has_message and not calls),
            "reasoning_words": _length(len(reasoning.split())),
            "heard_words": _length(self._heard_words),
            "heard_failed": float(self._heard_failed),
            "observation_words": _length(sum(self.overlap.read_given(text) for text in seen if text)),
            "calls": _count(len(calls)),
            "argument_words": _length(sum(len(written.split()) for written in arguments)),
            "message_repeated": float(has_message and message in self._messages),
        }
        row |= _form(message, words) | self._repeated_calls(calls) | self._failed(calls, seen)
        row["intent_without_call"] = float(not calls and "intents" in row)
        self.rows.append(row)
        self._messages.add(message)
        self._heard_words, self._heard_failed = 0, False

    def _repeated_calls(self, calls: Sequence[tuple[str, str]]) -> _Row:
        tools = {name for name, _ in calls}
        row = {
            "call_repeated": share(sum(call in self._calls for call in calls), len(calls)),
            "tool_repeated": share(sum(name in self._tools for name, _ in calls), len(calls)),
            "retried_failure": float(bool(tools & self._failed_tools)),
        }
        self._calls.update(calls)
        self._tools |= tools
        return row

    def _failed(self, calls: Sequence[tuple[str, str]], seen: Sequence[str]) -> _Row:
        """failures_in_a_row: of the steps that saw something, this one and those directly before it that failed."""
        counts = _failures("\n".join(seen))
        failed = any(counts.values())
        row = {f"observation_{name}": _count(count) for name, count in counts.items()}
        row["observation_failed"] = float(failed)
        row["observation_empty"] = float(bool(calls) and not any(text.strip() for text in seen))
        row["observation_repeated"] = share(
            sum(text in self._observations for text in seen if text), len(seen)
        )
        if calls or seen:
            self._failures = self._failures + 1 if failed else 0
            self._failed_tools = {name for name, _ in calls} if failed else set()
            row["failures_in_a_row"] = _count(self._failures)
        self._observations.update(seen)
        return row


def _form(message: str, words: MessageWords) -> _Row:
    row = {name: _count(count) for name, count in _PHRASE_COUNTER.count(message, _MOST).items()}
    row |= {name: _count(sum(map(message.count, symbols))) for name, symbols in SYMBOLS.items()}
    end, total = message.rstrip()[-1:], len(words.ids)
    sentences = words.sentences[-1] + 1 if total else 0
    return row | {
        "words": _length(total),
        "sentences": _length(sentences),
        "sentence_words": _length(share(total, sentences)),
        "lines": _length(message.count("\n")),
        "word_length": min(share(words.characters, total) / 16, 1.0),
        "uppercase_words": share(words.capitals, total),
        "number_share": share(words.digits, total),
        "non_ascii": 1 - share(len(message.encode("ascii", "ignore")), len(message)) if message else 0.0,
        "unfinished": float(bool(end) and end not in _CLOSED),
        "ends_with_question": float(end in ("?", "？")),
    }


def _failures(text: str) -> dict[str, int]:
    counts = _FAILURE_COUNTER.count(text, _MOST) if text else {}
    if "error_words" in counts:
        counts["error_words"] = max(0, counts["error_words"] - count_matches(NO_FAILURE, text, _MOST))
    return counts


def _count(number: int) -> float:
    return _COUNTS[min(number, _MOST)]


def _length(number: float) -> float:
    return math.log1p(number) / 8
