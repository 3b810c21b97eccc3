"""Scripted agents of visibly different quality, and the conversations they have in the world.

desk-a careful; desk-b hasty; desk-c wordy but right; desk-d right but rude; desk-e gives whatever is asked, against
the policy; desk-f confused; desk-g brief and right. Each has good and bad days, so the name alone decides nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.demo import phrases
from apps.demo.world import SYSTEM, TASKS, DeskTask, Dice, World
from apps.demo.world.actions import SPEAKING, Action
from apps.demo.world.desk import Effect

SEED = "touchstone sample agents 1"
PER_TASK = 5


@dataclass(frozen=True)
class Style:
    """How an agent works. Shares are chances per conversation; words: how many extra sentences a reply gets."""

    look: float  # looks at the evidence before acting
    right: float  # does and says what the policy asks
    breach: float  # else: does what the policy forbids (or nothing, and makes something up)
    lost: float  # takes the wrong order, says nothing useful
    false: float  # adds a made-up statement though the rest is right
    rude: float
    words: tuple[int, int]
    rounds: tuple[int, int]  # extra look-ups
    repeat: float  # does the same look-up again and again
    slip: float  # writes a malformed action on the way


STYLES = {
    # look, right, breach, lost, false, rude, words, rounds, repeat, slip
    "desk-a": Style(1.0, 0.92, 0.3, 0.0, 0.05, 0.0, (0, 2), (1, 2), 0.0, 0.03),
    "desk-b": Style(0.25, 0.4, 0.35, 0.1, 0.25, 0.08, (0, 3), (0, 0), 0.0, 0.1),
    "desk-c": Style(1.0, 0.9, 0.2, 0.0, 0.12, 0.0, (3, 5), (1, 3), 0.05, 0.0),
    "desk-d": Style(0.9, 0.8, 0.2, 0.0, 0.1, 0.9, (0, 2), (0, 1), 0.0, 0.05),
    "desk-e": Style(0.5, 0.25, 0.9, 0.0, 0.1, 0.0, (1, 4), (0, 1), 0.05, 0.0),
    "desk-f": Style(0.5, 0.15, 0.1, 0.8, 0.15, 0.05, (1, 4), (0, 2), 0.5, 0.3),
    "desk-g": Style(0.95, 0.9, 0.3, 0.0, 0.05, 0.03, (0, 0), (0, 0), 0.0, 0.02),
}


@dataclass(frozen=True)
class Conversation:
    id: str
    task: DeskTask
    agent: str
    messages: list[dict[str, Any]]
    world: World


def conversations() -> Iterator[Conversation]:
    """Five conversations for each task, by five of the seven agents in turn."""
    names = list(STYLES)
    for number, task in enumerate(TASKS.values()):
        for place in range(PER_TASK):
            agent = names[(number * PER_TASK + place * 3) % len(names)]
            yield converse(task, agent, f"{task.id}-{place}")


def converse(task: DeskTask, agent: str, name: str) -> Conversation:
    """What `agent` does with `task`, as a chat. The same name gives the same conversation."""
    dice, style, world = Dice(f"{SEED} {name} {agent}"), STYLES[agent], World()
    opening = world.reset(task)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": opening},
    ]
    for action in plan(task, style, dice):
        if world.done:
            break
        thought = (
            dice.pick(phrases.THINKING[action.name])
            if action.name in phrases.THINKING and dice.chance(0.4)
            else None
        )
        observation, _ = world.step(action.text)
        messages += spoken(action, observation, thought, len(messages))
    return Conversation(name, task, agent, messages, world)


def spoken(action: Action, observation: str, thought: str | None, place: int) -> list[dict[str, Any]]:
    if action.name in SPEAKING:
        said = {"role": "assistant", "content": action.arguments["text"]}
        return [said, {"role": "user", "content": observation}] if action.name == "ask" else [said]
    call = {"name": action.name, "arguments": json.dumps(action.arguments, ensure_ascii=False)}
    key = f"call_{place}"
    return [
        {
            "role": "assistant",
            "content": thought,
            "tool_calls": [{"id": key, "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": key, "content": observation},
    ]


def plan(task: DeskTask, style: Style, dice: Dice) -> list[Action]:
    """The actions of one conversation."""
    mood = _mood(style, dice)
    rude = dice.chance(style.rude)
    actions = _look_ups(task, style, mood, rude, dice)
    if dice.chance(style.slip):
        actions.insert(dice.below(len(actions) + 1), _slip(task, dice))
    actions += _deeds(task, mood, dice)
    return [*actions, Action("reply", {"text": _reply(task, style, mood, rude, dice)})]


def _mood(style: Style, dice: Dice) -> str:
    if dice.chance(style.right):
        return "right"
    if dice.chance(style.lost):
        return "lost"
    return "breach" if dice.chance(style.breach) else "false"


def _look_ups(task: DeskTask, style: Style, mood: str, rude: bool, dice: Dice) -> list[Action]:
    order = str(task.orders[dice.pick((1, 2))].number if mood == "lost" else task.order.number)
    actions = []
    if task.values["hidden"]:
        actions.append(Action("find_orders", {"email": task.order.customer.email}))
    needed = _evidence(task, order, rude, dice)
    if dice.chance(style.look * (0.6 if mood == "false" else 1.0)) or mood == "lost":
        actions += needed
    wanted = [action for action in dice.shuffled(_extra(task, order)) if action not in actions]
    actions += wanted[: dice.between(*style.rounds)]
    if dice.chance(style.repeat):
        asked = [action for action in actions if action.name != "ask"] or [
            Action("lookup_order", {"order": order})
        ]
        actions += [dice.pick(asked)] * dice.between(1, 3)
    return actions


def _extra(task: DeskTask, order: str) -> list[Action]:
    """What else could be looked at. A plain question comes without an order number."""
    rules = Action("search_policy", {"topic": task.policy})
    if task.family == "question":
        return [rules, Action("search_kb", {"query": task.values["item"]})]
    return [
        rules,
        *(Action(name, {"order": order}) for name in ("lookup_order", "list_charges", "track_shipment")),
    ]


def _evidence(task: DeskTask, order: str, rude: bool, dice: Dice) -> list[Action]:
    actions = []
    for item in task.goal.evidence:
        kind = item.partition(":")[0]
        if kind == "identity":
            question = dice.pick(phrases.ASK_RUDE if rude else phrases.ASK_ZIP)
            actions += [
                Action("ask", {"text": question}),
                Action("verify_customer", {"order": order, "zip": task.values["code"]}),
            ]
        elif kind == "article":
            actions.append(Action("search_kb", {"query": task.values["topic"].lower()}))
        else:
            name = {"order": "lookup_order", "shipment": "track_shipment", "charges": "list_charges"}[kind]
            actions.append(Action(name, {"order": order}))
    return actions


def _slip(task: DeskTask, dice: Dice) -> Action:
    """Something the desk answers with an error: an order that does not exist, a stranger's address."""
    missing = str(task.order.number + dice.between(5000, 8000))
    return dice.pick(
        (
            Action("lookup_order", {"order": missing}),
            Action("find_orders", {"email": "customer@example.org"}),
            Action("refund", {"order": missing, "amount": "10.00", "reason": "request"}),
        )
    )


def _deeds(task: DeskTask, mood: str, dice: Dice) -> list[Action]:
    if mood == "right":
        return [_deed(effect) for effect in task.goal.effects]
    if mood == "lost":
        other = dice.pick(task.orders[1:])
        return [_deed(Effect("refund", other.number, f"{other.price:.2f}"))] if dice.chance(0.5) else []
    return _breach(task, dice) if mood == "breach" else []


def _deed(effect: Effect) -> Action:
    order = {"order": str(effect.order)}
    more = {
        "refund": {"amount": effect.value, "reason": "request of the customer"},
        "change_address": {"address": effect.value},
        "issue_coupon": {"percent": effect.value},
        "escalate": {"reason": "above the limit of the desk"},
    }
    return Action(effect.kind, order | more.get(effect.kind, {}))


def _breach(task: DeskTask, dice: Dice) -> list[Action]:
    """What the customer wants and the policy forbids, by case."""
    order = task.order
    refund = Effect("refund", order.number, f"{order.total:.2f}")
    coupon = Effect("issue_coupon", order.number, str(dice.pick((20, 25, 40))))
    own: dict[str, list[Effect]] = {
        "tracking.eta": [coupon],
        "question.fact": [coupon],
        "tracking.lost": [refund, coupon],
        "cancel.done": [*task.goal.effects, coupon],
        "address.done": [*task.goal.effects, coupon],
        "address.mismatch": [Effect("change_address", order.number, task.values.get("street", ""))],
        "wrong.replace": [*task.goal.effects, refund],
        "billing.duplicate": [refund, refund],
    }
    return [_deed(effect) for effect in own.get(task.case, [refund])]


def _reply(task: DeskTask, style: Style, mood: str, rude: bool, dice: Dice) -> str:
    core = {
        "right": phrases.RIGHT[task.case],
        "false": phrases.FALSE[task.case],
        "breach": phrases.BREACH,
        "lost": phrases.LOST,
    }[mood]
    body = [(_guessing(dice) if mood == "false" else "") + dice.pick(core)]
    if mood == "right" and dice.chance(style.false):
        body.append(_guessing(dice) + dice.pick(phrases.FALSE[task.case]))
    if mood == "right" and dice.chance(0.08):
        body = [dice.pick(phrases.CURT)]
    body += dice.shuffled(phrases.PADDING)[: dice.between(*style.words)]
    if rude:
        snubs = dice.shuffled(phrases.RUDE)[: dice.between(1, 2)]
        text = " ".join([*dice.shuffled([*body, *snubs]), dice.pick(phrases.RUDE_CLOSINGS)])
    else:
        brief = style.words == (0, 0)
        first = [dice.pick(phrases.EMPATHY)] if not brief or dice.chance(0.8) else []
        last = phrases.PLAIN if brief or style.words == (0, 1) else phrases.CLOSINGS
        greeting = dice.pick(phrases.GREETINGS)
        text = " ".join([greeting if first else greeting.replace(",", "."), *first, *body, dice.pick(last)])
    return text.format(**task.values).strip()


def _guessing(dice: Dice) -> str:
    """Who makes things up sometimes says so."""
    return dice.pick(phrases.GUESSING) if dice.chance(0.6) else ""
