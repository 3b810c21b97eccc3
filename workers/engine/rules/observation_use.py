"""How good the results of tools are: whether they have the answer, and whether the agent used them."""

from collections.abc import Callable

from workers.engine.rules.agent_text import agent_steps, message_of, results, texts
from workers.engine.rules.answers import normalised
from workers.engine.rules.references import reference_part, texts_of
from workers.schema import ScoreInput, Trajectory
from workers.schema.model_score import ModelScore
from workers.schema.step_parts import ObservationUse

_HINT = "the reference is the right answer, as text, as a list of alternatives, or as the key `answer` of an object."


def rated(rule: ObservationUse, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Mean over observations of (correctness_weight * c + utility_weight * u) / (their sum): 0 to 1, 0 without one.

    c: it has all words of a right answer. u: at least `at_least` of its words that were nowhere before it, or all of
    them where it has fewer, are in what the agent wrote in later steps. ReSeek, with words in place of a reranker.
    """
    answers = _answers(item) if rule.correctness_weight else []
    seen = results(item)
    total = sum(map(len, seen)) * (rule.correctness_weight + rule.utility_weight)
    later = _later(texts(item))
    earned = []
    for known, found, used in zip(_known(item), seen, later, strict=True):
        gained = 0.0
        for text in found:
            words = _words(text)
            new = words - known
            known |= words
            is_used = bool(new) and len(new & used) >= min(rule.at_least, len(new))
            is_right = any(answer <= words for answer in answers)
            gained += rule.correctness_weight * is_right + rule.utility_weight * is_used
        earned.append(gained / total if total else 0.0)
    return ModelScore.sum_of_steps(earned)


def _words(text: str) -> set[str]:
    return set(normalised(text).split())


def _answers(item: ScoreInput) -> list[set[str]]:
    listed = texts_of(reference_part(item, "answer", _HINT), _HINT)
    return [words for answer in listed if (words := _words(answer))]


def _later(said: list[str]) -> list[set[str]]:
    """By agent step, the words of all that the agent wrote after it."""
    found: list[set[str]] = [set()]
    for text in reversed(said[1:]):
        found.append(found[-1] | _words(text))
    return found[::-1]


def _known(item: ScoreInput) -> list[set[str]]:
    """By agent step, the words of all messages up to it, its own among them, and of earlier results of tools."""
    content = item.content
    if not isinstance(content, Trajectory):
        return [set() for _ in agent_steps(item)]
    words, found = _words(content.task.instruction), []
    said, seen = iter(texts(item)), iter(results(item))
    for step in content.steps:
        if step.source == "agent":
            words |= _words(next(said))
            found.append(set(words))
            words |= _words("\n".join(next(seen)))
        elif step.source != "environment":
            words |= _words(message_of(step))
    return found
