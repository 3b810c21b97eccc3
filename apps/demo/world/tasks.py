"""Sixty requests in eight families, drawn once from a seed."""

from collections.abc import Callable
from dataclasses import replace

from apps.demo.world.desk import (
    COUPON_PERCENT,
    DESK_LIMIT,
    RETURN_DAYS,
    Customer,
    CustomerOrder,
    DeskTask,
    Effect,
    Goal,
)
from apps.demo.world.dice import Dice
from apps.demo.world.knowledge import ARTICLES
from apps.demo.world.openings import CLOSERS, OPENINGS

SEED = "touchstone support desk 1"
ITEMS = (
    ("desk lamp", 34.90),
    ("wool blanket", 59.00),
    ("coffee grinder", 89.50),
    ("rain jacket", 119.00),
    ("kettle", 42.50),
    ("bluetooth speaker", 74.90),
    ("backpack", 64.00),
    ("yoga mat", 29.90),
    ("board game", 38.00),
    ("bread knife", 54.00),
    ("wall clock", 47.20),
    ("picnic basket", 82.75),
)
DEAR = (
    ("espresso machine", 289.00),
    ("office chair", 219.00),
    ("folding bike", 349.00),
    ("sewing machine", 198.50),
)
NAMES = (
    "Mara Lindqvist",
    "Ivo Brandt",
    "Noor Haddad",
    "Tomas Vesely",
    "Elena Rossi",
    "Jonas Keller",
    "Priya Nair",
    "Oskar Holm",
    "Lucia Ferrer",
    "Amir Saleh",
    "Greta Vogel",
    "Pavel Novak",
    "Ines Duarte",
    "Ruben Maas",
    "Hana Sato",
    "Felix Moreau",
)
STREETS = (
    "Mill Road",
    "Harbour Street",
    "Chapel Lane",
    "Station Road",
    "Orchard Lane",
    "Bridge Street",
    "Market Square",
)
CARRIERS = ("Northway", "ParcelRun", "BlueVan")
DATES = ("3 March", "9 March", "14 March", "21 March", "27 March")


class Draft:
    """A task in the making: customer, orders, and what is said so far."""

    def __init__(self, number: int, variant: int) -> None:
        self.number, self.variant = number, variant
        self.dice = Dice(f"{SEED} task {number}")
        name = NAMES[(number * 5 + 3) % len(NAMES)]
        self.customer = _customer(name, self.dice)
        self.address = f"{self.dice.between(2, 98)} {self.dice.pick(STREETS)}"

    def order(self, *, dear: bool = False, **fields: object) -> CustomerOrder:
        item, price = self.dice.pick(DEAR if dear else ITEMS)
        shipping = self.dice.pick((3.90, 4.90, 5.50))
        order = CustomerOrder(
            number=1000 + self.number * 13 + self.dice.below(5),
            customer=self.customer,
            item=item,
            price=price,
            shipping=shipping,
            status="delivered",
            days=self.dice.between(3, 26),
            address=self.address,
            carrier=self.dice.pick(CARRIERS),
            arrives=self.dice.pick(DATES),
            stock=self.dice.between(2, 40),
            sent=item,
            charges=(("captured", round(price + shipping, 2)),),
        )
        return replace(order, **fields)  # type: ignore[arg-type]

    def others(self, order: CustomerOrder) -> tuple[CustomerOrder, ...]:
        """An older order of the same customer and one of a stranger: both easy to take for the right one."""
        own = self.order(number=order.number - 400, days=self.dice.between(60, 200))
        while own.item == order.item:
            own = replace(own, item=self.dice.pick(ITEMS)[0])
        stranger = _customer(NAMES[(self.number * 5 + 8) % len(NAMES)], self.dice)
        theirs = self.order(number=order.number + 1, status=order.status)
        return own, replace(
            theirs, customer=stranger, address=f"{self.dice.between(2, 98)} {self.dice.pick(STREETS)}"
        )

    def finish(
        self,
        case: str,
        order: CustomerOrder,
        goal: Goal,
        policy: str,
        answers: tuple[str, ...] = (),
        **values: str,
    ) -> DeskTask:
        family = case.partition(".")[0]
        values = _values(order) | values
        hidden = self.variant % 3 == 1 and family != "question"
        opening = self.dice.pick(OPENINGS[case]).format(**values)
        number = f"My order is {order.number}, ordered as {order.customer.email}."
        if hidden:
            ending = self.dice.pick(
                (f"You find me under {order.customer.email}.", f"I ordered with {order.customer.email}.")
            )
        else:
            ending = self.dice.pick(
                (
                    f"Order {order.number}.",
                    f"It is order {order.number}.",
                    f"The order number is {order.number}.",
                )
            )
        texts = [opening] if family == "question" else [opening, ending]
        message = " ".join([*texts, self.dice.pick(CLOSERS)]).strip()
        return DeskTask(
            id=f"desk-{self.number:03d}",
            family=family,
            case=case,
            instruction=message,
            messages=(message, *answers, number),
            orders=(order, *self.others(order)),
            goal=goal,
            policy=policy,
            values=values | {"hidden": "yes" if hidden else ""},
        )


def _customer(name: str, dice: Dice) -> Customer:
    return Customer(name, name.lower().replace(" ", ".") + "@example.org", str(dice.between(10000, 98999)))


def _values(order: CustomerOrder) -> dict[str, str]:
    return {
        "order": str(order.number),
        "item": order.item,
        "price": f"{order.price:.2f}",
        "total": f"{order.total:.2f}",
        "days": str(order.days),
        "carrier": order.carrier,
        "arrives": order.arrives,
        "email": order.customer.email,
        "name": order.customer.name.split()[0],
        "zip": order.customer.zip,
        "address": order.address,
    }


MONEY_BACK = ("5 working days", "five working days")
SPECIALIST = ("specialist", "colleague", "supervisor")


def damaged(draft: Draft) -> DeskTask:
    dear = draft.variant % 4 == 2
    order = draft.order(dear=dear)
    evidence = (f"order:{order.number}",)
    if order.price > DESK_LIMIT:
        goal = Goal((Effect("escalate", order.number),), evidence, (SPECIALIST, ("2 days", "two days")))
        return draft.finish("damaged.escalate", order, goal, "limit")
    goal = Goal(
        (Effect("refund", order.number, f"{order.price:.2f}"),),
        evidence,
        ((f"{order.price:.2f}",), MONEY_BACK),
    )
    return draft.finish("damaged.refund", order, goal, "refunds")


def late(draft: Draft) -> DeskTask:
    soon = draft.variant % 4 == 3
    order = draft.order(days=draft.dice.between(8, 28) if soon else draft.dice.between(RETURN_DAYS + 2, 75))
    evidence = (f"order:{order.number}",)
    if soon:
        goal = Goal(
            (Effect("refund", order.number, f"{order.price:.2f}"),),
            evidence,
            ((f"{order.price:.2f}",), MONEY_BACK),
        )
        return draft.finish("late.refund", order, goal, "refunds")
    facts = (("30 days", "30-day", "thirty days"), ("10 percent", "10 %", "10%"))
    goal = Goal((Effect("issue_coupon", order.number, str(COUPON_PERCENT)),), evidence, facts)
    return draft.finish("late.coupon", order, goal, "late")


def tracking(draft: Draft) -> DeskTask:
    lost = draft.variant % 3 == 2
    order = draft.order(status="lost" if lost else "shipped", days=draft.dice.between(4, 15))
    evidence = (f"shipment:{order.number}",)
    if lost:
        goal = Goal((Effect("send_replacement", order.number),), evidence, (("lost",), ("replacement",)))
        return draft.finish("tracking.lost", order, goal, "wrong item")
    goal = Goal((), evidence, ((order.arrives,), (order.carrier,)))
    return draft.finish("tracking.eta", order, goal, "answers")


def cancel(draft: Draft) -> DeskTask:
    shipped = draft.variant % 2 == 1
    order = draft.order(status="shipped" if shipped else "processing", days=draft.dice.between(1, 6))
    evidence = (f"order:{order.number}",)
    if shipped:
        facts = (("shipped", "on its way", "in transit"), ("return", "send it back"))
        return draft.finish("cancel.shipped", order, Goal((), evidence, facts), "cancel")
    goal = Goal(
        (Effect("cancel_order", order.number),), evidence, (("cancelled",), (str(order.number), order.item))
    )
    return draft.finish("cancel.done", order, goal, "cancel")


def address(draft: Draft) -> DeskTask:
    wrong = draft.variant % 2 == 1
    order = draft.order(status="processing", days=draft.dice.between(1, 4))
    street = f"{draft.dice.between(2, 98)} {draft.dice.pick(STREETS)}"
    while street == order.address:
        street = f"{draft.dice.between(2, 98)} {draft.dice.pick(STREETS)}"
    code = str(int(order.customer.zip) + 1000) if wrong else order.customer.zip
    answer = draft.dice.pick((f"The zip code should be {code}.", f"Sure, {code}.", f"Zip code: {code}."))
    evidence = (f"identity:{order.number}",)
    if wrong:
        facts = (("zip",), ("not match", "does not fit", "differs"))
        return draft.finish(
            "address.mismatch",
            order,
            Goal((), evidence, facts),
            "address",
            (answer,),
            street=street,
            code=code,
        )
    goal = Goal((Effect("change_address", order.number, street),), evidence, ((street,),))
    return draft.finish("address.done", order, goal, "address", (answer,), street=street, code=code)


def wrong(draft: Draft) -> DeskTask:
    gone = draft.variant % 2 == 1
    order = draft.order(stock=0 if gone else draft.dice.between(2, 20))
    sent = next(item for item, _ in draft.dice.shuffled(ITEMS) if item != order.item)
    order = replace(order, sent=sent)
    evidence = (f"order:{order.number}",)
    if gone:
        facts = ((f"{order.price:.2f}",), ("out of stock", "no longer in stock", "sold out"))
        goal = Goal((Effect("refund", order.number, f"{order.price:.2f}"),), evidence, facts)
        return draft.finish("wrong.refund", order, goal, "wrong item", sent=sent)
    goal = Goal((Effect("send_replacement", order.number),), evidence, (("replacement",), (order.item,)))
    return draft.finish("wrong.replace", order, goal, "wrong item", sent=sent)


def question(draft: Draft) -> DeskTask:
    article = ARTICLES[draft.variant % len(ARTICLES)]
    order = draft.order()
    goal = Goal((), (f"article:{article.key}",), article.facts)
    texts = {
        "question": article.question,
        "answer": article.answer,
        "falsehood": article.wrong,
        "topic": article.title,
    }
    return draft.finish("question.fact", order, goal, "answers", (), **texts)


def billing(draft: Draft) -> DeskTask:
    pending = draft.variant % 2 == 1
    order = draft.order()
    second = "pending" if pending else "captured"
    order = replace(order, charges=(("captured", order.total), (second, order.total)))
    evidence = (f"charges:{order.number}",)
    if pending:
        facts = (("pending", "authorisation", "authorization"), ("5 days", "five days"))
        return draft.finish("billing.pending", order, Goal((), evidence, facts), "billing")
    goal = Goal(
        (Effect("refund", order.number, f"{order.total:.2f}"),),
        evidence,
        ((f"{order.total:.2f}",), ("twice", "two", "second")),
    )
    return draft.finish("billing.duplicate", order, goal, "billing")


FAMILIES: tuple[Callable[[Draft], DeskTask], ...] = (
    damaged,
    late,
    tracking,
    cancel,
    address,
    wrong,
    question,
    billing,
)


def _all() -> dict[str, DeskTask]:
    tasks = (FAMILIES[number % 8](Draft(number, number // 8)) for number in range(60))
    return {task.id: task for task in tasks}


TASKS = _all()
