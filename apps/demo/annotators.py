"""Scripted annotators: they see the hidden reward through noise and a bias of their own, and say so in several ways."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from apps.demo import remarks
from apps.demo.agents import Conversation
from apps.demo.world import Dice
from apps.demo.world.scoring import COURTESY, RUDENESS

SEED = "touchstone sample annotators 1"
CAMPAIGN = "Sample {kind}"
Record = dict[str, Any]


@dataclass(frozen=True)
class SimulatedAnnotator:
    """noise: sigma on the hidden reward. long, kind: what a long or a courteous conversation adds for this one."""

    name: str
    noise: float
    long: float
    kind: float


ANNOTATORS = (
    SimulatedAnnotator("sim-ada", 0.04, 0.0, 0.0),
    SimulatedAnnotator("sim-ben", 0.15, 0.1, 0.02),
    SimulatedAnnotator("sim-cleo", 0.25, 0.0, 0.12),
    SimulatedAnnotator("sim-dov", 0.6, -0.08, 0.0),
)


@dataclass(frozen=True)
class Impression:
    """What one annotator makes of one conversation."""

    value: float

    @property
    def poor(self) -> bool:
        return self.value < 0.42


def impression(annotator: SimulatedAnnotator, conversation: Conversation, about: str) -> Impression:
    """Noise is drawn once for each annotator, conversation and occasion."""
    dice = Dice(f"{SEED} {annotator.name} {conversation.id} {about}")
    reply = conversation.messages[-1]["content"] or ""
    length = min(2.0, len(reply) / 300) - 1.0
    kindness = (COURTESY.search(reply) is not None) - 2 * (RUDENESS.search(reply) is not None)
    value = conversation.world.reward + annotator.long * length + annotator.kind * kindness
    return Impression(value + dice.normal(annotator.noise))


def _head(conversation: Conversation, annotator: SimulatedAnnotator, kind: str) -> Record:
    campaign = CAMPAIGN.format(kind=kind)
    return {
        "task": {"id": conversation.task.id},
        "campaign": campaign,
        "annotator": annotator.name,
        "origin": "simulated",
    }


def _item(conversation: Conversation) -> Record:
    return {"trajectory_id": conversation.id}


def _by_task(conversations: list[Conversation]) -> dict[str, list[Conversation]]:
    groups: dict[str, list[Conversation]] = {}
    for conversation in conversations:
        groups.setdefault(conversation.task.id, []).append(conversation)
    return groups


def pairs(conversations: list[Conversation]) -> Iterator[Record]:
    """Eight of the ten pairs of each task, those of equal quality left for last.

    Three of them are judged by three annotators, the others by one, more often by one of the first two.
    """
    for task, group in _by_task(conversations).items():
        dice = Dice(f"{SEED} pairs {task}")
        chosen = sorted(dice.shuffled(list(combinations(group, 2))), key=_is_even)[:8]
        for place, (first, second) in enumerate(chosen):
            a, b = (first, second) if dice.chance(0.5) else (second, first)
            several = dice.shuffled(ANNOTATORS)[:3]
            for annotator in several if place < 3 else [someone(dice)]:
                yield preference(annotator, a, b)


def someone(dice: Dice) -> SimulatedAnnotator:
    """Whoever is there: the first two are so more often."""
    return dice.pick((*ANNOTATORS, *ANNOTATORS[:2]))


def _is_even(pair: tuple[Conversation, Conversation]) -> bool:
    return abs(pair[0].world.reward - pair[1].world.reward) < 0.03


def preference(annotator: SimulatedAnnotator, a: Conversation, b: Conversation) -> Record:
    """What this annotator says of two conversations of one task; the same whenever it is asked."""
    left = impression(annotator, a, f"pair {b.id}")
    right = impression(annotator, b, f"pair {a.id}")
    gap = left.value - right.value
    if left.poor and right.poor and abs(gap) < 0.2:
        choice = "both_bad"
    elif abs(gap) < 0.04:
        choice = "tie"
    else:
        choice = "a" if gap > 0 else "b"
    strength = 1 if choice in ("tie", "both_bad") else 1 + (abs(gap) > 0.2) + (abs(gap) > 0.45)
    judged = {"a": _item(a), "b": _item(b), "choice": choice, "strength": strength, "criterion": None}
    return _head(a, annotator, "comparisons") | judged


def steps(conversations: list[Conversation]) -> Iterator[Record]:
    """Step labels from the true credit for two conversations in three, by one annotator or two."""
    for number, conversation in enumerate(conversations):
        dice = Dice(f"{SEED} steps {conversation.id}")
        for annotator in dice.shuffled(ANNOTATORS)[: (0, 1, 2)[number % 3]]:
            labels = [
                label_of(credit + dice.normal(annotator.noise / 4)) for credit in conversation.world.credit
            ]
            record = _head(conversation, annotator, "step labels") | {"trajectory": _item(conversation)}
            if dice.chance(0.2):
                yield record | {"first_error": labels.index("bad") if "bad" in labels else None}
            else:
                kept = {
                    str(index): label for index, label in enumerate(labels) if dice.chance(0.9) or index == 0
                }
                yield record | {"labels": kept}


def label_of(credit: float) -> str:
    return "good" if credit > 0.03 else "bad" if credit < -0.02 else "neutral"


def rubric(conversations: list[Conversation]) -> Iterator[Record]:
    """Four criteria from 1 to 5 for every second conversation, by one annotator or two."""
    for number, conversation in enumerate(conversations[::2]):
        dice = Dice(f"{SEED} rubric {conversation.id}")
        for annotator in dice.shuffled(ANNOTATORS)[: 1 + number % 2]:
            for criterion, share in _criteria(conversation).items():
                seen = min(1.0, max(0.0, share + dice.normal(annotator.noise)))
                judged = {
                    "criterion": criterion,
                    "definition": remarks.CRITERIA[criterion],
                    "value": 1 + round(4 * seen),
                }
                yield (
                    _head(conversation, annotator, "scores")
                    | {"trajectory": _item(conversation)}
                    | judged
                    | {"scale": [1, 5]}
                )


def _criteria(conversation: Conversation) -> dict[str, float]:
    """The share of each criterion that is truly met."""
    score, state = conversation.world.score, conversation.world.state
    rude = "was rude" in score.faults
    harm = sum("unwanted" in fault for fault in score.faults)
    false = sum("without ground" in fault for fault in score.faults)
    return {
        "polite": 0.0 if rude else score.manner,
        "correct": max(0.0, (score.goal + score.told) / 2 - 0.3 * false - 0.3 * harm),
        "efficient": max(0.0, 1.0 - 0.3 * (state.repeats + state.errors)),
        "follows_policy": max(0.0, 0.4 + 0.6 * score.groundwork - 0.5 * state.violations - 0.4 * harm),
    }


def ratings(conversations: list[Conversation]) -> Iterator[Record]:
    """Of every second conversation: accepted or rejected by two annotators, or rated 1 to 5 by two."""
    for number, conversation in enumerate(conversations[1::2]):
        dice = Dice(f"{SEED} ratings {conversation.id}")
        for annotator in dice.shuffled(ANNOTATORS)[:2]:
            value = impression(annotator, conversation, "rating").value
            points = 1 + round(4 * min(1.0, max(0.0, value)))
            said: Record = {"accept": value > 0.5} if number % 2 else {"rating": points, "scale": [1, 5]}
            yield _head(conversation, annotator, "ratings") | {"trajectory": _item(conversation)} | said


def rankings(conversations: list[Conversation]) -> Iterator[Record]:
    """Of every second task all its conversations, by two annotators; what seems equally good shares a rank."""
    for task, group in list(_by_task(conversations).items())[::2]:
        for annotator in Dice(f"{SEED} rankings {task}").shuffled(ANNOTATORS)[:2]:
            values = [
                round(8 * impression(annotator, conversation, "ranking").value) for conversation in group
            ]
            best_first = sorted(set(values), reverse=True)
            ranks = [1 + best_first.index(value) for value in values]
            judged = {"items": [_item(conversation) for conversation in group], "ranks": ranks}
            yield _head(group[0], annotator, "rankings") | judged


def comments(conversations: list[Conversation]) -> Iterator[Record]:
    """Remarks on what truly happened, by one annotator or two; careless ones also remark what did not."""
    for number, conversation in enumerate(conversations):
        dice = Dice(f"{SEED} comments {conversation.id}")
        for annotator in dice.shuffled(ANNOTATORS)[: 2 if number % 3 == 0 else 1]:
            for remark in _remarks(conversation, annotator, dice):
                anchor = None if remark.step is None else {"steps": [remark.step, remark.step]}
                text = dice.pick(remarks.TEXTS[remark.about]).format(**conversation.task.values)
                said = {"text": text, "anchor": anchor, "sign": remark.sign}
                yield _head(conversation, annotator, "comments") | {"trajectory": _item(conversation)} | said


def _remarks(conversation: Conversation, annotator: SimulatedAnnotator, dice: Dice) -> list[remarks.Remark]:
    """One or two of what stands out, mixed with a shrug at times, or with a mistake as often as the annotator errs."""
    found = remarks.notable(conversation)
    if dice.chance(annotator.noise / 2):
        found = [dice.pick(remarks.mistaken(conversation))]
    elif dice.chance(0.12):
        found.append(remarks.Remark("plain", None, None))
    return dice.shuffled(found)[: dice.between(1, 2)]
