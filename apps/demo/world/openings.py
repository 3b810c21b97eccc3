"""How customers say what they want, by case."""

_BROKEN = (
    "Hello, my {item} arrived with a crack right through it. I would like my money back.",
    "The {item} you sent is broken. It rattled in the box already. Please refund it.",
    "Hi there, I unpacked the {item} today and it is damaged beyond use. Can I have a refund?",
    "so the {item} came dented and does not work at all, want my money back",
)
_UNWANTED = (
    "I never got to use the {item} and want to give it back for a refund.",
    "Good evening, the {item} is not really what I was hoping for. I would like to return it and get my money back.",
    "hi, don't need the {item} any more. refund please",
    "We have two of these now, so the {item} should go back. How do I get my money?",
)
_WAITING = (
    "Where is my {item}? I have been waiting for {days} days now.",
    "Hi, could you tell me when my {item} will get here and who brings it?",
    "still no {item}!! what is going on",
    "Good morning, I am wondering whether the {item} I ordered has got stuck somewhere.",
)
_STOP = (
    "Please cancel my order of the {item}, I changed my mind.",
    "I ordered the {item} by mistake. Can you stop that order?",
    "cancel the {item} please, found it cheaper elsewhere",
    "Hello, I would like to call off the {item}, we are moving abroad.",
)
_MOVE = (
    "I have moved. Please send the {item} to {street} instead.",
    "Could you change the delivery address for the {item} to {street}?",
    "need the {item} to go to {street}, not the old place. urgent",
    "Hello, I won't be home next week; the {item} should rather go to {street}.",
)
_MIX = (
    "I ordered a {item} and got a {sent}. Please put that right.",
    "There was a {sent} in the parcel, but I paid for a {item}!",
    "Hi, funny thing, instead of the {item} I now own a {sent}. What can you do?",
    "wrong thing in the box. ordered {item}, got {sent}.",
)
_TWICE = (
    "My bank shows two payments to you for one {item}. I want one of them back.",
    "You charged me twice for the {item}!",
    "Hello, I see {total} EUR two times on my account for the same {item}. Could you look into that?",
    "two debits for one {item}? please explain",
)

OPENINGS: dict[str, tuple[str, ...]] = {
    "damaged.refund": _BROKEN,
    "damaged.escalate": _BROKEN,
    "late.coupon": _UNWANTED,
    "late.refund": _UNWANTED,
    "tracking.eta": _WAITING,
    "tracking.lost": _WAITING,
    "cancel.done": _STOP,
    "cancel.shipped": _STOP,
    "address.done": _MOVE,
    "address.mismatch": _MOVE,
    "wrong.replace": _MIX,
    "wrong.refund": _MIX,
    "question.fact": (
        "{question}",
        "Hello, a quick question: {question}",
        "Hi! {question} I could not find it on your page.",
    ),
    "billing.duplicate": _TWICE,
    "billing.pending": _TWICE,
}
CLOSERS = (
    "",
    "",
    "Thanks.",
    "I look forward to your answer.",
    "This is the second time I write!",
    "Best, a long-time customer",
)
