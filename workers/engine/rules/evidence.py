"""Passages that support the answer, by the words they share with it."""

from collections.abc import Callable, Sequence

from workers.engine.rules.agent_text import agent_steps, message_of, results
from workers.engine.rules.answers import normalised
from workers.engine.rules.references import reference_part, reference_text, texts_of
from workers.schema import ScoreInput
from workers.schema.model_score import ModelScore
from workers.schema.patterns import TextPattern
from workers.schema.reference_parts import EvidenceMatch

_HINT = "the reference is the right answer, as text, as a list of alternatives, or as the key `answer` of an object."
_CITED = TextPattern(r"\[(\d{1,6})\]")


def cited_passages(passages: Sequence[tuple[int, str]], answer: str) -> list[tuple[int, str]]:
    """Those that the answer names as [1], [2], in the order of retrieval."""
    cited = {int(number) for number in _CITED.findall(answer)}
    return [passage for number, passage in enumerate(passages, 1) if number in cited]


def supported(rule: EvidenceMatch, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Supporting passages / passages: 0 to 1, 0 without a passage."""
    steps = agent_steps(item)
    last = message_of(steps[-1])
    answers = (
        [last] if reference_text(item) is None else texts_of(reference_part(item, "answer", _HINT), _HINT)
    )
    wanted = [words for answer in answers if (words := set(normalised(answer).split()))]
    passages = [(place, text) for place, texts in enumerate(results(item)) for text in texts]
    if rule.passages == "cited":
        passages = cited_passages(passages, last)
    earned = [0.0] * len(steps)
    for place, text in passages:
        words = set(normalised(text).split())
        if any(len(words & answer) >= rule.at_least * len(answer) for answer in wanted):
            earned[place] += 1 / len(passages)
    return ModelScore.sum_of_steps(earned)
