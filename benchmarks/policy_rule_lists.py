"""The rules of tau-bench's airline and retail policies, listed by hand from the documents before the splitter was
written: the first and the last words of each, and its category. A rule is what an agent can follow or break, or a
limit, price or entitlement that it must state correctly; what a record contains or a call changes is none."""

B, C, F = "behavioural", "conditional", "factual"
API_DOES_NOT_CHECK = ("The API does not check these", "before calling the API!", B)
AIRLINE = [
    ("Before taking any actions that update", "(yes) to proceed.", C),
    ("You should not provide any information", "recommendations or comments.", B),
    ("You should only make one tool call", "to the user simultaneously.", B),
    ("If you respond to the user", "at the same time.", C),
    ("You should deny user requests", "against this policy.", B),
    ("You should transfer the user", "scope of your actions.", C),
    ('If the status is "delayed"', "cannot be booked.", C),
    ('If the status is "flying"', "cannot be booked.", C),
    ("The agent must first obtain the user id, then", "origin, destination.", B),
    ("Each reservation can have at most", "five passengers.", F),
    ("The agent needs to collect", "for each passenger.", B),
    ("All passengers must fly", "in the same cabin.", F),
    ("each reservation can use at most one", "three gift cards.", F),
    ("The remaining amount of a travel", "not refundable.", F),
    ("All payment methods must already", "for safety reasons.", F),
    ("If the booking user is a regular", "each business passenger.", C),
    ("If the booking user is a silver", "each business passenger.", C),
    ("If the booking user is a gold", "each business passenger.", C),
    ("Each extra baggage", "50 dollars.", F),
    ("the agent should ask if the user wants", "weather reasons.", B),
    ("The agent must first obtain the user id and", "reservation id.", B),
    ("Basic economy flights cannot", "be modified.", F),
    ("Other reservations can be modified", "trip type.", F),
    ("Some flight segments can be kept", "current price.", F),
    API_DOES_NOT_CHECK,
    ("all reservations, including basic", "changing the flights.", F),
    ("Cabin changes require", "new cabin class.", F),
    ("Cabin class must be the same", "is not possible.", F),
    ("The user can add but", "checked bags.", F),
    ("The user cannot add insurance", "initial booking.", F),
    ("The user can modify passengers", "number of passengers.", F),
    ("If the flights are changed", "refund method.", C),
    ("The agent should ask for the payment", "method instead.", B),
    ("The agent must first obtain the user id, the", "or other reasons)", B),
    ("All reservations can be cancelled", "cancelled the flight.", C),
    ("Otherwise, basic economy", "can always be cancelled.", C),
    ("The rules are strict", "membership status.", F),
    API_DOES_NOT_CHECK,
    ("The agent can only cancel", "not flown.", B),
    ("If any of the segments", "transfer is needed.", C),
    ("The refund will go", "business days.", F),
    ("If the user is silver/gold member", "$100 times the number of passengers.", C),
    ("If the user is silver/gold member", "$50 times the number of passengers.", C),
    ("Do not proactively offer", "some compensation.", C),
    ("Do not compensate if", "(basic) economy.", C),
]
RETAIL = [
    ("At the beginning of the conversation", "zip code.", B),
    ("This has to be done", "the user id.", B),
    ("Once the user has been authenticated", "order id.", C),
    ("You can only help one user", "any other user.", B),
    ("Before taking consequential actions", "(yes) to proceed.", C),
    ("You should not make up", "recommendations or comments.", B),
    ("You should at most make one tool call", "at the same time.", B),
    ("If you respond to the user", "make a tool call.", C),
    ("You should transfer the user", "scope of your actions.", C),
    ("They have no relations", "be confused.", B),
    ("Generally, you can only", "delivered orders.", B),
    ("Exchange or modify order tools", "called once.", F),
    ("Be sure that all items", "the tool call!!!", B),
    ("An order can only be cancelled", "the action.", C),
    ("The user needs to confirm the order id and", "for cancellation.", B),
    ("After user confirmation, the order status will be changed to 'cancelled'", "business days.", C),
    ("An order can only be modified", "the action.", C),
    ("For a pending order, you can take", "nothing else.", C),
    ("The user can only choose", "original payment method.", F),
    ("If the user wants the modify", "the total amount.", C),
    ("The original payment method will be", "business days.", C),
    ("This action can only be called once", "order anymore.", F),
    ("So confirm all the details", "taking this action.", B),
    ("In particular, remember to remind", "to be modified.", B),
    ("For a pending order, each item", "product option.", C),
    ("There cannot be any change", "shirt to shoe.", F),
    ("The user must provide a payment", "price difference.", B),
    ("If the user provides a gift card", "price difference.", C),
    ("An order can only be returned", "the action.", C),
    ("The user needs to confirm the order id, the list", "the refund.", B),
    ("The refund must either", "gift card.", F),
    ("An order can only be exchanged", "the action.", C),
    ("In particular, remember to remind", "to be exchanged.", B),
    ("For a delivered order, each item", "product option.", C),
    ("There cannot be any change", "shirt to shoe.", F),
    ("The user must provide a payment", "price difference.", B),
    ("If the user provides a gift card", "price difference.", C),
]


def places(text: str, rules: list[tuple[str, str, str]]) -> list[tuple[int, int, str]]:
    """(start, end, category) of each listed rule in its document, in order. Raises ValueError where one is missing."""
    found, after = list[tuple[int, int, str]](), 0
    for first, last, category in rules:
        start = text.index(first, after)
        after = text.index(last, start) + len(last)
        found.append((start, after, category))
    return found


def matches(
    wanted: list[tuple[int, int, str]], found: list[tuple[int, int, str]]
) -> list[tuple[tuple[int, int, str], tuple[int, int, str]]]:
    """Pairs whose places overlap by at least half of what they cover together, each used once."""
    pairs = []
    rest = list(found)
    for own in wanted:
        for other in rest:
            both = min(own[1], other[1]) - max(own[0], other[0])
            if both > 0 and both / (max(own[1], other[1]) - min(own[0], other[0])) >= 0.5:
                pairs.append((own, other))
                rest.remove(other)
                break
    return pairs
