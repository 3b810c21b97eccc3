"""Entities of the reference that a run came across."""

from collections.abc import Callable
from typing import Any

from workers.engine.rules.agent_text import agent_steps, message_of
from workers.engine.rules.answers import normalised
from workers.engine.rules.progress import by_step
from workers.engine.rules.references import reference_part, texts_of
from workers.errors import RewardError
from workers.schema import ScoreInput
from workers.schema.model_score import ModelScore
from workers.schema.reference_parts import EntityMatch

_HINT = (
    "the reference is the list of entities, or an object with `entities`: texts, or a list of the names of one entity; "
    "with near_miss, it has the right `answer` too."
)
_MOST = 1000


def matched(rule: EntityMatch, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Entities found / entities; with near_miss, 1 with the right answer and near_miss times that share without.

    E-GRPO, with two differences. Matches are of whole words, after SQuAD's clean-up. The published share is relative to
    the best of a group; this one to all entities, so that the reward of an item does not depend on others.
    """
    left = _entities(item)
    total = len(left)
    earned = []
    for text in by_step(item, rule.within):
        words = f" {normalised(text)} "
        still = [names for names in left if not any(f" {name} " in words for name in names)]
        earned.append((len(left) - len(still)) / total)
        left = still
    if rule.near_miss is None:
        return ModelScore.sum_of_steps(earned)
    answers = texts_of(reference_part(item, "answer", _HINT), _HINT)
    last = f" {normalised(message_of(agent_steps(item)[-1]))} "
    steps = [rule.near_miss * part for part in earned]
    if any(f" {name} " in last for answer in answers if (name := normalised(answer))):
        steps[-1] += 1.0 - rule.near_miss * (total - len(left)) / total
    return ModelScore.sum_of_steps(steps)


def _entities(item: ScoreInput) -> list[list[str]]:
    """The names of each entity, cleaned."""
    listed: Any = reference_part(item, "entities", _HINT)
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST:
        raise RewardError(_HINT[0].upper() + _HINT[1:], pointer="/reference")
    found = [[name for text in texts_of(one, _HINT) if (name := normalised(text))] for one in listed]
    if not all(found):
        raise RewardError("An entity of the reference has no letters or digits.", pointer="/reference")
    return found
