"""Comparisons of the sample world in which one annotator is careless, or an adversary."""

import random
from collections.abc import Sequence

import msgspec

from workers.schema import FeedbackRecord, PreferenceRecord

RANDOM_SHARE = 0.3
ADVERSARY, ADVERSARY_RIGHT = "adversary", 0.15
_ANNOTATORS, _CHOICES = 5, 50  # who judge separate comparisons, and how many each


def careless_records(records: Sequence[FeedbackRecord], seed: int) -> dict[str, list[FeedbackRecord]]:
    """The same comparisons three times: `clean`; `noisy`, 30 % of them given at random by one; `without` those."""
    dice = random.Random(f"random annotator {seed}")
    clean, noisy, without = list[FeedbackRecord](), list[FeedbackRecord](), list[FeedbackRecord]()
    for record in strict_preferences(records):
        clean.append(record)
        if dice.random() < RANDOM_SHARE:
            noisy.append(
                msgspec.structs.replace(record, annotator="sim-dice", choice=dice.choice("ab"), strength=1)
            )
        else:
            noisy.append(record)
            without.append(record)
    return {"clean": clean, "noisy": noisy, "without": without}


def adversary_records(records: Sequence[FeedbackRecord], seed: int) -> list[PreferenceRecord]:
    """Five annotators of 50 choices each, no comparison judged twice. One of them makes 85 % of the choices the other
    way round."""
    dice = random.Random(f"adversary {seed}")
    by_pair = {frozenset((record.a.id, record.b.id)): record for record in strict_preferences(records)}
    chosen = dice.sample([*by_pair.values()], min(len(by_pair), _ANNOTATORS * _CHOICES))
    found = []
    for place, record in enumerate(chosen):
        name = ADVERSARY if place % _ANNOTATORS == 0 else f"honest-{place % _ANNOTATORS}"
        choice = record.choice
        if name == ADVERSARY and dice.random() >= ADVERSARY_RIGHT:
            choice = "b" if choice == "a" else "a"
        found.append(msgspec.structs.replace(record, annotator=name, choice=choice, strength=1))
    return found


def strict_preferences(records: Sequence[FeedbackRecord]) -> list[PreferenceRecord]:
    return [
        record for record in records if isinstance(record, PreferenceRecord) and record.choice in ("a", "b")
    ]
