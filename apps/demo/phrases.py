"""What the scripted agents say: several phrasings of everything, by case of the task."""

# What to tell the customer when the case was handled as the policy asks. Every phrasing states all facts.
RIGHT: dict[str, tuple[str, ...]] = {
    "damaged.refund": (
        "I have booked a refund of {price} EUR for the {item}; it reaches your account within 5 working days.",
        "Your {item} has been refunded: {price} EUR are on their way and take 5 working days.",
        "The {price} EUR you paid for the {item} will be back with you in 5 working days.",
    ),
    "damaged.escalate": (
        "A refund of {price} EUR is above what I may decide, so I have handed your case to a specialist, "
        "who answers within 2 days.",
        "Because the {item} costs {price} EUR, I have passed this to a specialist; you hear from them within 2 days.",
        "I have escalated the damaged {item} to a specialist, who will come back to you within 2 days.",
    ),
    "late.coupon": (
        "The {item} was delivered {days} days ago and our return window is 30 days, so I cannot refund it; "
        "a 10 percent coupon for your next order is yours instead.",
        "Returns are possible for 30 days and yours was delivered {days} days ago. "
        "What I can give you is a coupon of 10 percent.",
        "After 30 days we no longer refund. To make up for it a little, you have a 10 percent coupon now.",
    ),
    "late.refund": (
        "You are well within the return window, so {price} EUR for the {item} will be back with you in 5 working days.",
        "The {item} came {days} days ago, that is in time. A refund of {price} EUR is booked and takes 5 working days.",
        "Your refund of {price} EUR has been booked and arrives within 5 working days.",
    ),
    "tracking.eta": (
        "Your {item} is travelling with {carrier} and is expected on {arrives}.",
        "{carrier} has the parcel, and it should be with you on {arrives}.",
        "The parcel is in transit; {carrier} plans to deliver it on {arrives}.",
    ),
    "tracking.lost": (
        "{carrier} has declared the parcel lost, so I have sent you a replacement {item}.",
        "The carrier lost your {item}. A replacement is on its way to you at no cost.",
        "I found that the parcel was lost on the road; a replacement has been sent today.",
    ),
    "cancel.done": (
        "Order {order} with the {item} has been cancelled; nothing will be sent.",
        "The {item} was not shipped yet, so order {order} is now cancelled.",
        "That was in time: I have cancelled the {item}.",
    ),
    "cancel.shipped": (
        "The {item} has shipped already, so I can no longer stop it; you may return it once it has arrived.",
        "Your order is on its way and too late to cancel, but you can send it back after delivery.",
        "As the parcel is in transit, cancelling is not possible any more. You may return the {item} when it comes.",
    ),
    "address.done": (
        "The {item} will now go to {street}.",
        "I have changed the address of order {order} to {street}.",
        "Done: order {order} is delivered to {street}.",
    ),
    "address.mismatch": (
        "The zip code you gave does not match the one on file, so I cannot change the address yet. "
        "Write to us with the right one and it is done in a minute.",
        "For your safety I change addresses only after checking the zip code, and {code} does not match our records.",
        "I had to leave the address as it is: the zip code does not match the order.",
    ),
    "wrong.replace": (
        "A replacement with the right {item} is on its way to you.",
        "I have sent you a replacement, this time really the {item}.",
        "The {item} you ordered goes out as a free replacement.",
    ),
    "wrong.refund": (
        "The {item} is out of stock, so I have booked a refund of {price} EUR instead of sending another one.",
        "As the {item} is sold out, you get the {price} EUR back.",
        "I would have sent the right {item}, but it is no longer in stock; {price} EUR go back to your account.",
    ),
    "question.fact": (
        "{answer}",
        "{answer} That is what our guide says.",
        "Here is what I found in our guide: {answer}",
    ),
    "billing.duplicate": (
        "The order was indeed charged twice, and I have booked a refund of {total} EUR for the second payment.",
        "You are right, there are two payments. {total} EUR go back to you.",
        "The second charge was our mistake: {total} EUR are on their way back.",
    ),
    "billing.pending": (
        "The second line is only a pending authorisation, not a payment; it disappears by itself within 5 days.",
        "You paid once. The other entry is a pending reservation of your bank that lapses within 5 days.",
        "Only one payment was taken; what you see beside it is pending and vanishes within 5 days.",
    ),
}

# What a wrong answer to the case sounds like: facts no one looked up, deeds no one did.
FALSE: dict[str, tuple[str, ...]] = {
    "damaged.refund": (
        "I have booked a full refund of 112.40 EUR, it is there in 24 hours.",
        "Damaged goods are covered for 365 days, and your refund has been issued already.",
    ),
    "damaged.escalate": (
        "Your refund has been booked in full and arrives in 48 hours.",
        "The workshop will repair the {item} in 14 days.",
    ),
    "late.coupon": (
        "Returns are possible for 90 days, so your refund has been booked.",
        "You are in time; I have issued a refund and it is there in 3 days.",
    ),
    "late.refund": (
        "The return window is only 7 days, so I am afraid it is too late.",
        "We do not take back opened parcels.",
    ),
    "tracking.eta": (
        "Your {item} was handed to a neighbour at number 72 this morning.",
        "The {item} left our warehouse 45 minutes ago and will be there tomorrow by 8.15.",
    ),
    "tracking.lost": (
        "Your parcel is about 40 kilometres away and comes tomorrow.",
        "The {item} was delivered to your garage at 16.20.",
    ),
    "cancel.done": (
        "It is too late to cancel, the {item} left us 9 hours ago.",
        "Cancelling costs a fee of 12.50 EUR, so I left it as it is.",
    ),
    "cancel.shipped": (
        "Your order has been cancelled.",
        "All done, the order is now cancelled and nothing will come.",
    ),
    "address.done": (
        "The address has been changed, it takes effect in 72 hours.",
        "Addresses can only be changed by letter to box 4400.",
    ),
    "address.mismatch": (
        "The address has been changed as you wished.",
        "All good, I have changed the address.",
    ),
    "wrong.replace": (
        "The {sent} is worth 97.30 EUR, so you made a bargain; please keep it instead.",
        "The {item} is sold out until 2031.",
    ),
    "wrong.refund": (
        "A replacement has been sent and arrives in 36 hours.",
        "The right {item} arrives with van 881 tomorrow; the replacement is on its way.",
    ),
    "question.fact": ("{falsehood}", "As far as I know: {falsehood}"),
    "billing.duplicate": (
        "Our records show 7 payments, all of them correct.",
        "The second payment is an insurance of 18.75 EUR you chose.",
    ),
    "billing.pending": (
        "I have booked a refund for the second payment.",
        "The second payment has been refunded, it takes 21 days.",
    ),
}

GUESSING = (
    "From memory, without looking: ",
    "I have not checked it, but ",
    "My guess is this: ",
    "If I recall correctly: ",
)

# What a generous agent says after doing what the policy forbids.
BREACH = (
    "I made an exception for you, just this once, and put everything through the way you wanted.",
    "The rules would say otherwise, but I have bent them a little for you and arranged it all.",
    "Normally this is not allowed, yet I did it anyway so that you are happy.",
    "I skipped the checks and gave you what you asked for, and a bit more.",
    "You are a valued customer, so I overrode the system and got it done.",
)
LOST = (
    "I looked at several things but could not find out what this is about.",
    "There seem to be different orders here and I am not certain which one you mean.",
    "Something was done on an order, I believe it was the right one.",
    "The system shows many entries, it is probably somewhere in there.",
    "I am not sure this answers you, but the rules are quite long.",
)
CURT = ("Done.", "All set.", "That is sorted.", "Taken care of.", "Handled.")
GREETINGS = ("Hello {name},", "Dear {name},", "Hi {name},", "Good day {name},")
EMPATHY = (
    "thank you for writing to us.",
    "I am sorry for the trouble this has caused.",
    "thanks for your message.",
    "I understand how annoying that must be.",
    "thank you for your patience.",
    "I appreciate that you told us.",
)
CLOSINGS = (
    "Please write again if anything is left open.",
    "Kind regards, your service desk",
    "I am glad I could look into this.",
    "Best wishes from the desk.",
    "Have a pleasant day, and thank you.",
    "Is there anything else? I am happy to help.",
)
PLAIN = ("", "", "Regards.", "The desk")
PADDING = (
    "I took the time to go through your order and our rules line by line so that nothing is overlooked.",
    "In case you wonder why this took a moment: I checked everything before touching anything.",
    "There is nothing further for you to do, and no form to fill in.",
    "We know that your time is precious and that nobody enjoys writing to a service desk.",
    "You can keep this message as a confirmation for your own records.",
    "Our whole team reads what customers tell us, and it helps us to do better.",
    "Should your bank or the carrier have questions, they are welcome to contact us directly.",
    "I have also left a note in your file so that a colleague would see at once what happened.",
)
RUDE = (
    "Obviously you did not read the terms before writing.",
    "Next time read the rules before you waste my time.",
    "It is your own fault, but fine.",
    "How hard can it be to look this up yourself?",
    "Calm down, it is only a parcel.",
    "Stop complaining, others have real problems.",
    "Whatever. Deal with it.",
    "As anyone can see on our page, this was never difficult.",
    "This is not my problem, and don't write again about it.",
)
RUDE_CLOSINGS = ("Next.", "That is all.", "", "Case closed.", "No further questions, I hope.")
ASK_ZIP = (
    "Could you please tell me the zip code on file, so that I can verify the order?",
    "Before I change anything I need the zip code of the order, please.",
    "Thanks. To be safe, what is the zip code we have on file for you?",
)
ASK_RUDE = (
    "Zip code. And be quick.",
    "I need your zip code, obviously.",
    "Zip code? You should have said so at once.",
)
THINKING: dict[str, tuple[str, ...]] = {
    "find_orders": (
        "Let me find the order first.",
        "No number given, so I search by e-mail.",
        "Looking up this customer.",
    ),
    "lookup_order": (
        "Let me look at the order.",
        "First the facts of the order.",
        "I check dates, price and stock.",
    ),
    "track_shipment": ("Let me see where the parcel is.", "Checking with the carrier."),
    "list_charges": ("I compare the charges.", "Let me see what was really paid."),
    "search_policy": ("What do our rules say?", "I make sure the policy allows this."),
    "search_kb": ("That should be in the knowledge base.", "Let me look for an article."),
    "verify_customer": ("Now the identity check.", "I compare the zip code."),
    "refund": ("The refund can be booked.", "Paying the money back."),
    "cancel_order": ("It can be cancelled.", "Stopping the order."),
    "change_address": ("Now the new address.", "Changing the address."),
    "send_replacement": ("A replacement it is.", "Sending the item again."),
    "issue_coupon": ("A coupon is what I can offer.", "Issuing the coupon."),
    "escalate": ("This has to go to a specialist.", "Above my limit, handing it over."),
}
