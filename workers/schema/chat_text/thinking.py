"""Reasoning that models write into their text: `<think>...</think>` and the marks of other families."""

from dataclasses import dataclass

_MARKS = (
    ("<think>", "</think>"),
    ("<|channel>thought", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """A text as its reasoning and what it says. before, after: the marks with the whitespace around them."""

    before: str
    reasoning: str
    after: str
    text: str

    def joined(self) -> str:
        return self.before + self.reasoning + self.after + self.text


def split_thinking(text: str) -> Thinking | None:
    """None for a text without reasoning. A mark that only closes counts too: templates open it in the prompt; so does
    one that only opens: the answer was cut."""
    for opening, closing in _MARKS:
        lead = len(text) - len(text.lstrip())
        begins = text.startswith(opening, lead)
        end = text.find(closing)
        if not begins and (end < 0 or opening in text[:end] or not _closes(text, end, end + len(closing))):
            continue
        start = lead + len(opening) if begins else 0
        stop = end if end >= 0 else len(text)
        inner = text[start:stop]
        reasoning = inner.strip()
        at = start + inner.find(reasoning) if reasoning else stop
        rest = text[stop + len(closing) :] if end >= 0 else ""
        said = rest.lstrip("\n")
        after = text[at + len(reasoning) : len(text) - len(said)]
        return Thinking(text[:at], reasoning, after, said)
    return None


def _closes(text: str, start: int, end: int) -> bool:
    """Whether a mark that nothing opened stands at a line's edge, rather than being mentioned in a sentence."""
    return text[end : end + 1] in ("", "\n") or text[start - 1 : start] == "\n"
