"""Which step a comment is about, among those the agent took.

Each step is scored by what it has in common with the comment: the meaning of what was said and done, and of what came
back (cosine of embeddings), rare words of both (weighted by how few steps of the trajectory hold them), the speaker's
name, a tool that failed where the comment blames, and how early it is. The weights were fitted by conditional logit
(McFadden 1974) on the labelled steps of AgentRx and Who&When together; docs/metrics.md says what they find on runs that
were left out.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.schema import Step, Trajectory
from workers.schema.patterns import TextPattern

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
FEATURES = ("did", "saw", "words done", "words seen", "speaker", "failed", "early")
FLAGS = ("acts", "failed", "last", "place", "repeats")
WEIGHTS = (0.55, 0.33, 0.85, 1.43, 1.82, 0.62, 0.92)
_WORD = re.compile(r"[^\W_]{2,}")
_FAILED = TextPattern(
    r"(?i)\b(?:error|exception|traceback|failed|failure|not found|invalid|denied|exitcode: [1-9])"
)
_CHARACTERS = 4000  # of each side of a step that are looked at
_SHOWN = 200  # characters that say what was done


@dataclass(frozen=True, slots=True)
class Seen:
    """A trajectory as comments are compared with it. steps: `step` index of each agent step. flags: [steps, FLAGS]."""

    steps: list[int]
    did: NDArray[np.float32]
    saw: NDArray[np.float32]
    words_done: list[set[str]]
    words_seen: list[set[str]]
    speakers: list[str]
    failed: NDArray[np.float64]
    flags: NDArray[np.float64]
    behaviours: list[str]


def look(trajectory: Trajectory, encode: Encode) -> Seen:
    places = trajectory.agent_steps
    steps = [trajectory.steps[place] for place in places]
    done, seen = [_done(step) for step in steps], [_seen(step) for step in steps]
    vectors = encode([*done, *seen])
    failed = np.array([float(bool(_FAILED.search(text))) for text in seen])
    return Seen(
        steps=places,
        did=vectors[: len(steps)],
        saw=vectors[len(steps) :],
        words_done=[_words(text) for text in done],
        words_seen=[_words(text) for text in seen],
        speakers=[str(step.extra.get("speaker") or "") for step in steps],
        failed=failed,
        flags=_flags(steps, failed),
        behaviours=[behaviour(step) for step in steps],
    )


def behaviour(step: Step) -> str:
    """What the agent did in a step, in a line: the calls, or else what it said."""
    calls = "; ".join(f"{call.name}({call.arguments_text})" for call in step.tool_calls)
    said = " ".join((calls or step.text or step.reasoning or "").split())
    return said if len(said) <= _SHOWN else f"{said[: _SHOWN - 1]}…"


def _flags(steps: Sequence[Step], failed: NDArray[np.float64]) -> NDArray[np.float64]:
    """[steps, FLAGS]: calls a tool; what came back failed; is the last; how late, 0 to 1; does again what was done."""
    out, before = np.zeros((len(steps), len(FLAGS))), set[tuple[tuple[str, str], ...]]()
    for place, step in enumerate(steps):
        calls = tuple((call.name, call.arguments_text) for call in step.tool_calls)
        last = place == len(steps) - 1
        late = place / max(len(steps) - 1, 1)
        out[place] = (bool(calls), failed[place], last, late, bool(calls) and calls in before)
        before.add(calls)
    return out


def ground(
    points: Sequence[str],
    signs: Sequence[int],
    seen: Seen,
    vectors: NDArray[np.float32],
    *,
    within: tuple[int, int] | None = None,
) -> NDArray[np.float64]:
    """[points, agent steps]: the chance of each step that the point is about it. vectors: of the points.

    within: `step` indices, inclusive, that the comment was anchored to: no others come into question, unless the
    agent took none of them.
    """
    scores = features(points, signs, seen, vectors) @ np.array(WEIGHTS)
    if within is not None:
        inside = np.array([within[0] <= step <= within[1] for step in seen.steps])
        if inside.any():
            scores = np.where(inside, scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True)) if len(points) else scores
    found: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True) if len(points) else shares
    return found


def features(
    points: Sequence[str], signs: Sequence[int], seen: Seen, vectors: NDArray[np.float32]
) -> NDArray[np.float64]:
    """[points, agent steps, FEATURES]. vectors: of the points."""
    out = np.zeros((len(points), len(seen.steps), len(FEATURES)))
    out[:, :, 0], out[:, :, 1] = vectors @ seen.did.T, vectors @ seen.saw.T
    rare_done, rare_seen = _rarity(seen.words_done), _rarity(seen.words_seen)
    speaking = {name: name.casefold().replace("_", " ") for name in set(seen.speakers) if name}
    early = np.linspace(1.0, 0.0, len(seen.steps)) if len(seen.steps) > 1 else np.ones(1)
    for row, (point, sign) in enumerate(zip(points, signs, strict=True)):
        words, plain = _words(point), point.casefold().replace("_", " ")
        out[row, :, 2] = [_shared(words, there, rare_done) for there in seen.words_done]
        out[row, :, 3] = [_shared(words, there, rare_seen) for there in seen.words_seen]
        out[row, :, 4] = [float(bool(name) and speaking[name] in plain) for name in seen.speakers]
        out[row, :, 5] = seen.failed * (sign < 0)
        out[row, :, 6] = early
    return out


def _done(step: Step) -> str:
    calls = [f"{call.name} {call.arguments_text}" for call in step.tool_calls]
    return "\n".join([step.text, step.reasoning or "", *calls]).strip()[:_CHARACTERS]


def _seen(step: Step) -> str:
    texts = [part.text for result in step.observation for part in result.content if part.text]
    return "\n".join(texts)[:_CHARACTERS]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _rarity(of_steps: Sequence[set[str]]) -> dict[str, float]:
    """ln((n + 1) / (steps that hold it)) of each word."""
    held = Counter(word for words in of_steps for word in words)
    return {word: math.log((len(of_steps) + 1) / count) for word, count in held.items()}


def _shared(words: set[str], there: set[str], rare: dict[str, float]) -> float:
    """The weight of the words that both have, by the square root of how many words the comment has."""
    return sum(rare[word] for word in words & there) / math.sqrt(max(len(words), 1))
