"""The knowledge base of the shop."""

from dataclasses import dataclass
from functools import cached_property

from workers.schema.patterns import TextPattern

_WORDS = TextPattern(r"[a-z]{4,}")


@dataclass(frozen=True)
class Article:
    """facts: what an answer from this article has to say, each by one of several wordings.

    question: what people ask; answer, wrong: a right and a wrong answer.
    """

    key: str
    title: str
    text: str
    facts: tuple[tuple[str, ...], ...]
    question: str
    answer: str
    wrong: str

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(_WORDS.findall(f"{self.title} {self.text}".lower()))


ARTICLES = (
    Article(
        "descaling",
        "Descaling the espresso machine",
        "Descale every 2 months with citric acid, never with vinegar: it eats the seals.",
        (("2 months", "two months"), ("citric",), ("vinegar",)),
        "How often do I have to descale my espresso machine, and can I just use vinegar?",
        "Please descale the machine every 2 months with citric acid; vinegar would damage the seals.",
        "You can descale the machine once every 18 months, and vinegar is perfectly fine for it.",
    ),
    Article(
        "blanket",
        "Washing the wool blanket",
        "Wash by hand or in the wool programme at 20 degrees; do not tumble dry, it shrinks.",
        (("20 degrees",), ("tumble", "dryer")),
        "Can the wool blanket go into the washing machine and the dryer?",
        "The wool programme at 20 degrees is fine; please keep the blanket out of the tumble dryer, where it shrinks.",
        "Yes, 60 degrees and the dryer on high are both no problem for the blanket.",
    ),
    Article(
        "warranty",
        "Warranty on electric appliances",
        "Electric appliances carry a warranty of 24 months from delivery; keep the invoice as proof.",
        (("24 months", "two years", "2 years"), ("invoice",)),
        "How long is the warranty on the coffee grinder and what do I need to claim it?",
        "The warranty on the grinder runs 24 months from delivery, and the invoice is all you need as proof.",
        "The warranty is 6 months and you need the unopened box to claim it.",
    ),
    Article(
        "jacket",
        "Proofing the rain jacket",
        "Re-proof the jacket after 5 washes with a fluorine-free spray; softener ruins the membrane.",
        (("5 washes", "five washes"), ("softener",)),
        "My rain jacket gets wet through lately. How do I take care of it?",
        "A fluorine-free spray after 5 washes brings the proofing back; please leave out softener.",
        "Just put a lot of softener into every wash, and the jacket will be tight again after 12 of them.",
    ),
    Article(
        "speaker",
        "Pairing two bluetooth speakers",
        "Hold the play button of both speakers for 6 seconds; they find each other when the light turns blue.",
        (("6 seconds", "six seconds"), ("blue",)),
        "How do I pair two of your bluetooth speakers for stereo?",
        "Hold the play button on both speakers for 6 seconds; once the light turns blue they are a stereo pair.",
        "That is not possible; you would have to buy the 199 EUR edition for stereo.",
    ),
    Article(
        "gift",
        "Gift wrapping and delivery abroad",
        "Gift wrapping costs 4.50 EUR; we deliver to Austria, Switzerland and the Benelux countries.",
        (("4.50",), ("Austria",)),
        "Do you wrap presents, and could you send one to my sister in Austria?",
        "We gladly wrap presents for 4.50 EUR, and Austria is one of the countries we deliver to.",
        "Wrapping is free above 80 EUR, but we never deliver outside the country.",
    ),
    Article(
        "chair",
        "Assembling the office chair",
        "Assembly takes 20 minutes; the gas spring must be pressed in, never screwed or hammered.",
        (("20 minutes", "twenty minutes"), ("pressed",)),
        "How long does it take to assemble the office chair, and does the gas spring have to be screwed in?",
        "Plan about 20 minutes for the chair; the gas spring is simply pressed in, without screws or a hammer.",
        "Assembly takes 3 hours and the gas spring should be hammered in firmly.",
    ),
)
