"""Right answers made wrong: the reference answer in the last message, with another value in its place.

Cooper (arXiv 2508.05613, section 3) pairs answers that a precise rule accepts with perturbed ones, since what a precise
rule rejects may be right and written otherwise.
"""

import random
from collections.abc import Sequence

from msgspec.structs import replace

from workers.schema import Trajectory

_DIGITS = "0123456789"


def with_wrong_answer(good: Trajectory, references: Sequence[str], dice: random.Random) -> Trajectory | None:
    """references: of other tasks, for answers without digits. None where the last message of the agent does not have
    the reference as whole words, or there is no other value."""
    reference = (good.task.reference or "").strip()
    last = good.agent_steps[-1]
    if not any(_places(part.text or "", reference) for part in good.steps[last].message):
        return None
    other = _other_value(reference, references, dice)
    if other is None:
        return None
    parts = tuple(
        replace(part, text=_replaced(part.text, reference, other)) if part.text else part
        for part in good.steps[last].message
    )
    steps = [*good.steps]
    steps[last] = replace(steps[last], message=parts)
    return Trajectory(steps=tuple(steps), task=good.task, conditions=good.conditions)


def _other_value(reference: str, references: Sequence[str], dice: random.Random) -> str | None:
    """The same with one digit changed, so that it is as long and as likely; without digits, another reference."""
    digits = [place for place, letter in enumerate(reference) if letter in _DIGITS]
    if digits:
        place = dice.choice(digits)
        is_leading = place == digits[0] and len(digits) > 1
        others = [digit for digit in _DIGITS[is_leading:] if digit != reference[place]]
        return reference[:place] + dice.choice(others) + reference[place + 1 :]
    others = [other for other in references if other.strip().lower() != reference.lower()]
    return dice.choice(others).strip() if others else None


def _places(text: str, reference: str) -> list[int]:
    """Where the reference stands and is no part of a longer word or number."""
    found, at = list[int](), text.find(reference) if reference else -1
    while at >= 0:
        end = at + len(reference)
        before, after = text[at - 1 : at], text[end : end + 2]
        is_longer = after[:1].isalnum() or (after[:1] in (".", ",") and after[1:].isdigit())
        if not before.isalnum() and not (before in (".", ",") and reference[0].isdigit()) and not is_longer:
            found.append(at)
        at = text.find(reference, end)
    return found


def _replaced(text: str, reference: str, other: str) -> str:
    for place in reversed(_places(text, reference)):
        text = text[:place] + other + text[place + len(reference) :]
    return text
