"""What the support desk knows and what can happen to it: customers, orders, effects, tasks."""

from dataclasses import dataclass, field

RETURN_DAYS = 30
DESK_LIMIT = 150.0
COUPON_PERCENT = 10

POLICY = {
    "refunds": f"Refund the item price, never the shipping fee, and only within {RETURN_DAYS} days of delivery. "
    "Refunds take 5 working days.",
    "late": f"After {RETURN_DAYS} days there is no refund; offer a {COUPON_PERCENT} percent coupon instead.",
    "limit": f"Refunds above {DESK_LIMIT:.0f} EUR are not the desk's: escalate them, a specialist decides.",
    "cancel": "Only orders that are still processing can be cancelled. Shipped ones may be returned after delivery.",
    "address": "Change an address only after verifying the zip code on file, and never on a mere promise.",
    "wrong item": "For a wrong item or a lost parcel send a replacement if there is stock, else refund the item price.",
    "billing": "Refund only a charge that was captured twice. A pending authorisation lapses by itself within 5 days.",
    "answers": "State only what a tool or the customer told you. Be courteous and clear.",
}


@dataclass(frozen=True)
class Customer:
    name: str
    email: str
    zip: str


@dataclass(frozen=True)
class CustomerOrder:
    """days: since delivery (since ordering, where it is not delivered). sent: what was put into the parcel."""

    number: int
    customer: Customer
    item: str
    price: float
    shipping: float
    status: str  # processing | shipped | delivered | lost
    days: int
    address: str
    carrier: str
    arrives: str
    stock: int
    sent: str
    charges: tuple[tuple[str, float], ...]  # (state, amount), state captured | pending

    @property
    def total(self) -> float:
        return round(self.price + self.shipping, 2)


@dataclass(frozen=True)
class Effect:
    """A change of the desk's database. value: amount, percent, address or item, as text."""

    kind: str
    order: int
    value: str = ""


@dataclass(frozen=True)
class Goal:
    """effects: what must have changed at the end, and nothing else. evidence: what to look at before that.

    facts: what the reply must say, each by one of several wordings.
    """

    effects: tuple[Effect, ...]
    evidence: tuple[str, ...]
    facts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DeskTask:
    """One request to the desk.

    messages: the customer's opening and what she answers when asked. policy: the rule that matters. values: for texts.
    """

    id: str
    family: str
    case: str
    instruction: str
    messages: tuple[str, ...]
    orders: tuple[CustomerOrder, ...]
    goal: Goal
    policy: str
    values: dict[str, str] = field(default_factory=dict)

    @property
    def order(self) -> CustomerOrder:
        """The order the request is about."""
        return self.orders[0]


@dataclass
class DeskState:
    """What one conversation has done so far."""

    effects: list[Effect] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # evidence looked at
    verified: set[int] = field(default_factory=set)  # orders whose customer proved who she is
    asked: int = 0
    violations: int = 0
    errors: int = 0
    repeats: int = 0
    reply: str | None = None
    heard: list[str] = field(default_factory=list)  # all texts the agent was shown
    said: list[str] = field(default_factory=list)  # questions to the customer
    # Evidence at the first change or at the reply, whichever came first.
    grounded: frozenset[str] | None = None
