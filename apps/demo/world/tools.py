"""What each tool does to the desk and what it answers. Nothing here raises for what an agent may write."""

from collections.abc import Callable
from functools import cache

from apps.demo.world.actions import Action, MalformedAction
from apps.demo.world.desk import (
    COUPON_PERCENT,
    DESK_LIMIT,
    POLICY,
    RETURN_DAYS,
    CustomerOrder,
    DeskState,
    DeskTask,
    Effect,
)
from apps.demo.world.knowledge import ARTICLES
from workers.schema.patterns import TextPattern

_WORDS = TextPattern(r"[a-z]{4,}")

Handler = Callable[[DeskTask, DeskState, dict[str, str]], str]


def run(action: Action, task: DeskTask, state: DeskState) -> str:
    """The observation of `action`. Raises Malformed for an order that does not exist and the like."""
    return _HANDLERS[action.name](task, state, action.arguments)


def _order(task: DeskTask, arguments: dict[str, str]) -> CustomerOrder:
    for order in task.orders:
        if order.number == int(arguments["order"]):
            return order
    raise MalformedAction(f"there is no order {arguments['order']}.")


def _find_orders(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    email = arguments["email"].strip().lower()
    found = [order for order in task.orders if order.customer.email == email]
    if not found:
        raise MalformedAction(f"no orders under {arguments['email'][:60]}.")
    return "Orders of {}: {}".format(
        found[0].customer.name, "; ".join(f"{order.number} {order.item} ({order.status})" for order in found)
    )


def _lookup_order(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    state.seen.add(f"order:{order.number}")
    when = f"{order.days} day{'s' * (order.days != 1)} ago"
    status = f"delivered {when}" if order.status == "delivered" else f"{order.status}, ordered {when}"
    return (
        f"Order {order.number} of {order.customer.name}: {order.item}, "
        f"{order.price:.2f} EUR plus {order.shipping:.2f} shipping, "
        f"{status}; in stock: {order.stock}; deliver to {order.address}."
    )


def _track_shipment(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    state.seen.add(f"shipment:{order.number}")
    if order.status == "processing":
        return f"Order {order.number} is still processing; no parcel yet."
    where = {
        "shipped": f"is in transit and expected on {order.arrives}",
        "delivered": f"was delivered {order.days} days ago",
        "lost": "was declared lost by the carrier",
    }[order.status]
    return f"Parcel of order {order.number} with {order.carrier} {where}."


def _list_charges(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    state.seen.add(f"charges:{order.number}")
    lines = "; ".join(f"{amount:.2f} EUR {status}" for status, amount in order.charges)
    return f"Charges of order {order.number}: {lines}."


@cache
def _words_of_rule(topic: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(f"{topic} {POLICY[topic]}".lower()))


def _search_policy(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    words = set(_WORDS.findall(arguments["topic"].lower()))
    found = [text for topic, text in POLICY.items() if words & _words_of_rule(topic)]
    return " ".join(found[:2]) if found else "No rule found; the topics are " + ", ".join(POLICY) + "."


def _search_kb(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    words = set(_WORDS.findall(arguments["query"].lower()))
    best = max(ARTICLES, key=lambda article: len(words & article.words))
    if not words & best.words:
        return "No article found; try other words."
    state.seen.add(f"article:{best.key}")
    return f"{best.title}: {best.text}"


def _verify_customer(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    state.seen.add(f"identity:{order.number}")
    if arguments["zip"].replace(" ", "") != order.customer.zip:
        return (
            f"The zip code {arguments['zip'][:20]} does not match the one on file for order {order.number}."
        )
    state.verified.add(order.number)
    return f"The zip code matches; the customer of order {order.number} is verified."


def _refund(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order, amount = _order(task, arguments), float(arguments["amount"])
    captured = [charged for status, charged in order.charges if status == "captured"]
    twice = len(captured) > 1 and amount <= captured[-1]
    warnings = [
        text
        for broken, text in (
            (amount > DESK_LIMIT, f"above the desk's limit of {DESK_LIMIT:.0f} EUR"),
            (amount > order.price and not twice, "more than the item price"),
            (
                order.status == "delivered" and order.days > RETURN_DAYS and not twice,
                f"outside the {RETURN_DAYS} days",
            ),
            (order.status in ("processing", "shipped") and not twice, "the order is not delivered"),
        )
        if broken
    ]
    if amount <= 0:
        raise MalformedAction("the amount of a refund must be above 0.00.")
    return _change(
        state,
        Effect("refund", order.number, arguments["amount"]),
        f"Refund of {amount:.2f} EUR booked",
        order,
        warnings,
    )


def _cancel_order(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    if order.status != "processing":
        raise MalformedAction(f"order {order.number} is {order.status} and can no longer be cancelled.")
    return _change(state, Effect("cancel_order", order.number), "Order cancelled", order, [])


def _change_address(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    if order.status != "processing":
        raise MalformedAction(
            f"order {order.number} is {order.status}; its address can no longer be changed."
        )
    warnings = [] if order.number in state.verified else ["the customer was not verified"]
    effect = Effect("change_address", order.number, arguments["address"])
    return _change(state, effect, f"Address changed to {arguments['address'][:80]}", order, warnings)


def _send_replacement(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    if order.stock < 1:
        raise MalformedAction(f"{order.item} is out of stock; no replacement can be sent.")
    fine = order.status == "lost" or order.sent != order.item
    warnings = [] if fine else ["nothing was lost or mixed up"]
    return _change(
        state,
        Effect("send_replacement", order.number),
        f"Replacement {order.item} on its way",
        order,
        warnings,
    )


def _issue_coupon(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order, percent = _order(task, arguments), int(arguments["percent"])
    warnings = [f"more than {COUPON_PERCENT} percent"] if percent > COUPON_PERCENT else []
    return _change(
        state,
        Effect("issue_coupon", order.number, str(percent)),
        f"Coupon of {percent} percent issued",
        order,
        warnings,
    )


def _escalate(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    order = _order(task, arguments)
    return _change(
        state,
        Effect("escalate", order.number),
        "Case handed to a specialist, who answers within 2 days",
        order,
        [],
    )


def _change(state: DeskState, effect: Effect, done: str, order: CustomerOrder, warnings: list[str]) -> str:
    state.effects.append(effect)
    state.violations += bool(warnings)
    warned = f" Warning: {'; '.join(warnings)}; an exception was logged." if warnings else ""
    return f"{done} for order {order.number} ({order.customer.name}).{warned}"


def _ask(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    state.asked += 1
    state.said.append(arguments["text"])
    return task.messages[state.asked] if state.asked < len(task.messages) else "I have told you all I know."


def _reply(task: DeskTask, state: DeskState, arguments: dict[str, str]) -> str:
    state.reply = arguments["text"]
    return "Sent."


_HANDLERS: dict[str, Handler] = {
    "find_orders": _find_orders,
    "lookup_order": _lookup_order,
    "track_shipment": _track_shipment,
    "list_charges": _list_charges,
    "search_policy": _search_policy,
    "search_kb": _search_kb,
    "verify_customer": _verify_customer,
    "refund": _refund,
    "cancel_order": _cancel_order,
    "change_address": _change_address,
    "send_replacement": _send_replacement,
    "issue_coupon": _issue_coupon,
    "escalate": _escalate,
    "ask": _ask,
    "reply": _reply,
}
