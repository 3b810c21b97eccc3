"""A policy document split into rules without a language model: by its headings, list items and sentences, and by the
words that oblige, forbid, permit or limit (modal verbs, imperatives, amounts)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

from workers.schema.patterns import PatternMatch, TextPattern

Category = Literal["factual", "behavioural", "conditional"]
Severity = Literal["low", "medium", "high"]
MAX_DOCUMENT_CHARACTERS = 500_000
MAX_RULES = 1000
MAX_RULE_CHARACTERS = 2000
MAX_SCOPE_CHARACTERS = 300


class FoundRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule and its place. start, end: characters of the document, whose text there is the quote. statement: the rule
    on one line. scope: the headings above it. preconditions: its clauses that say when it applies."""

    start: int
    end: int
    statement: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_RULE_CHARACTERS)]
    category: Category
    severity: Severity
    scope: Annotated[str, msgspec.Meta(max_length=MAX_SCOPE_CHARACTERS)] = ""
    preconditions: list[str] = []


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph or list item: its lines without the marker. scope: the headings above it, outermost first."""

    start: int
    end: int
    scope: tuple[str, ...]


_HEADING = TextPattern(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*$")
_ITEM = TextPattern(r"^[ \t]*(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+")
_LABEL = TextPattern(r"(?:\*\*|__)?[A-Z][\w ,/&'-]{0,60}:(?:\*\*|__)?[ \t]+")
_SHORT = TextPattern(
    r"(?i)\b(?:e\.g|i\.e|etc|vs|no|approx|incl|mr|mrs|ms|dr|st|inc|ltd|co|art|sec|p|[A-Z])\.$"
)
_END = TextPattern(r"[.!?]+[\"'”’)\]]*\s+|;\s+")
_BEGINS = TextPattern(r"[\"'“‘(\[*_]*[A-Z0-9]")
_AGENT = r"(?:the |an? |our )?(?:(?:\w+ )?(?:agent|assistant|representative|employee|staff)s?|you|we)"
# must, should, may not, cannot, need to ...; "can" and "may" oblige only with a limit
_SUBJECT, _AGENT_WORD = TextPattern(rf"(?i){_AGENT} "), TextPattern(rf"(?i)\b{_AGENT} ")
_OBLIGES = TextPattern(
    r"(?i)\b(?:must|shall|should|ought to|cannot|can ?not|can't|may not|won't|shouldn't|mustn't|will not|"
    r"(?:do|does) not|don't|never|need(?:s|ed)? to|has to|have to|had to|is to be|are to be|"
    r"(?:is|are) (?:only |not |strictly )*"
    r"(?:required|forbidden|prohibited|permitted|allowed|obliged|eligible|entitled|refundable|possible|strict|limited)|"
    r"not (?:possible|permitted|allowed|refundable)|requires?|only (?:if|when|after|once)|unless|if and only if|"
    r"at (?:most|least)|no more than|no less than|not more than|up to|nothing else|"
    r"(?:can|may) (?:only|always|never)|(?:is|are) responsible for)\b"
)
_NO_PERMISSION = TextPattern(r"(?i)\b(?:can|may) (?:help|be in status)\b")
_PERMITS = TextPattern(r"\b(?:can|may)\b|\bwill (?:go|be (?:refunded|charged|paid|credited))\b")
_IMPERATIVE = TextPattern(
    r"(?i)^(?:so,? |then,? |in particular,? |please |always |first,? |also,? |otherwise,? )*(?:do not|don't|never|be "
    r"sure|be cautious|make sure|ensure|confirm|verify|check|ask|remember|remind|collect|obtain|deny|refuse|reject|"
    r"offer|provide|transfer|escalate|use|avoid|keep|only|list|inform|tell|notify|report|log|include|follow|treat|apply|"
    r"authenticate|require|limit|send|issue|call|cancel|redact|mask|state|give|explain|delete|store|record)\b"
)
_AMOUNT = TextPattern(
    r"(?i)[$€£]\s?\d|\b\d[\d,.]*\s?(?:%|percent|dollars?|euros?|pounds?|usd|eur|gbp|"
    r"(?:(?:business|calendar|working) )?days?|hours?|minutes?|weeks?|months?|years?)\b|\b\d+ free\b"
)
_CONDITION = TextPattern(
    r"(?i)(?:^|[\s(,])((?:(?:only |and )?(?:if(?: and only if)?|when(?:ever)?|unless|until|once|before|after|where|"
    r"in case|provided that|as long as)|within \d+)\b[^,;.!?]*)"
)
_FOR_STATE = TextPattern(r"(?i)^for (?:a|an|any|each|every|all) (?:[\w-]+ ){1,3}?\w+,")
_BEGINS_CONDITION = TextPattern(r"(?i)^(?:otherwise|if|when(?:ever)?|unless|once|before|in case|where)\b")
_INNER_CONDITION = TextPattern(r"(?i)\b(?:if|unless|when|only after|once|within \d+ (?:hours?|days?))\b")
_BY_AGENT = TextPattern(
    rf"(?i)\b{_AGENT} (?:\w+ )?(?:must|shall|should|can|may|need|needs|has|have|cannot|are|is)\b"
    r"|\b(?:user|customer|client)s? (?:must|needs? to|has to|have to) (?:confirm|provide|give|state|agree)"
)
# A wish after "if" is what the agent asks, not when a rule applies; "even when" widens.
_NO_CONDITION = TextPattern(
    r"(?i)\b(?:ask|check|confirm|verify|know|see|determine)s? (?:if|whether)\b|\beven (?:if|when|after)\b|, and if\b.*"
)
_SEVERE = TextPattern(
    r"(?i)\b(?:must not|never|cannot|can not|forbidden|prohibited|strict(?:ly)?|under no circumstances|do not|may not|"
    r"explicit(?:ly)?|consent|authenticat\w+|safety|illegal|unlawful|deny)\b|!"
)
_MILD = TextPattern(r"(?i)\b(?:should|may|can|recommended|preferably|generally|where possible)\b")


def split_rules(text: str) -> list[FoundRule]:
    """Rules of a document as `documents.read_document` gives it, in order; at most MAX_RULES."""
    rules = list[FoundRule]()
    for block in _blocks(text):
        for start, end, labels in _sentences(text, block):
            statement = " ".join(text[start:end].replace("**", "").split())
            if (category := _category(statement)) is None or len(statement) > MAX_RULE_CHARACTERS:
                continue
            scope = " › ".join((*block.scope, *labels))
            rules.append(
                FoundRule(
                    start=start,
                    end=end,
                    statement=statement,
                    category=category,
                    severity=_severity(statement),
                    scope=scope[:MAX_SCOPE_CHARACTERS],
                    preconditions=_preconditions(statement),
                )
            )
            if len(rules) == MAX_RULES:
                return rules
    return rules


def _blocks(text: str) -> Iterator[_Block]:
    headings: list[str] = []
    start = end = place = -1
    is_code = False

    def ended() -> Iterator[_Block]:
        if start >= 0 and text[start:end].strip():
            yield _Block(start, end, tuple(headings))

    place = 0
    for line in text.splitlines(keepends=True):
        body = line.rstrip()
        heading, item = _HEADING.match(body), _ITEM.match(line)
        if body.lstrip().startswith(("```", "~~~")):
            yield from ended()
            start, is_code = -1, not is_code
        elif is_code:
            pass
        elif heading is not None:
            yield from ended()
            start = -1
            level = len(heading[1])
            headings = [*headings[: level - 1], heading[2]]
        elif not body:
            yield from ended()
            start = -1
        elif item is not None:
            yield from ended()
            start, end = place + item.end(), place + len(body)
        else:
            start = place + len(line) - len(line.lstrip()) if start < 0 else start
            end = place + len(body)
        place += len(line)
    yield from ended()


def _sentences(text: str, block: _Block) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """start, end and labels of each. A label at the beginning ("Payment: ...") belongs to the scope."""
    start, labels = block.start, tuple[str, ...]()
    label = _LABEL.match(text[start : block.end])
    if label is not None and label.end() < block.end - start:
        labels = (label[0].strip(" \t*_:"),)
        start += label.end()
    own = text[start : block.end]
    ends = [start + found.end() for found in _END.finditer(own) if _is_end(own, found)]
    for begin, end in pairwise([start, *ends, block.end]):
        while begin < end and text[begin].isspace():
            begin += 1
        while end > begin and text[end - 1].isspace():
            end -= 1
        if end > begin:
            yield begin, end, labels


def _is_end(text: str, found: PatternMatch) -> bool:
    """Whether a stop ends a sentence. A semicolon does between two rules with an agent as the subject, not between one
    rule and its explanation."""
    after = text[found.end() : found.end() + 200]
    if found[0].startswith(";"):
        return (
            _SUBJECT.match(after) is not None
            and _AGENT_WORD.search(text[max(0, found.start() - 300) : found.start()]) is not None
        )
    before = text[max(0, found.start() - 12) : found.start() + 1]
    return _BEGINS.match(after) is not None and _SHORT.search(before) is None


def _category(statement: str) -> Category | None:
    """None where the sentence is no rule."""
    if statement.endswith((":", "?")) or len(statement.split()) < 3:
        return None
    obliges = _OBLIGES.search(statement) or _is_imperative(statement)
    permits = _PERMITS.search(_NO_PERMISSION.sub(" ", statement))
    if not obliges and not permits and not _AMOUNT.search(statement):
        return None
    plain = _NO_CONDITION.sub(" ", statement)
    if _BEGINS_CONDITION.match(plain) or _FOR_STATE.match(plain) or _INNER_CONDITION.search(plain):
        return "conditional"
    return "behavioural" if _BY_AGENT.search(statement) or _is_imperative(statement) else "factual"


def _is_imperative(statement: str) -> bool:
    """Not of a noun that looks like one: "Use of the form is free." """
    found = _IMPERATIVE.match(statement)
    return found is not None and not statement[found.end() :].startswith(" of ")


def _severity(statement: str) -> Severity:
    if _SEVERE.search(statement):
        return "high"
    return "low" if _MILD.search(statement) and "must" not in statement.lower().split() else "medium"


def _preconditions(statement: str) -> list[str]:
    plain = _NO_CONDITION.sub(lambda found: " " * len(found[0]), statement)
    own = [found[1].strip() for found in _CONDITION.finditer(plain)]
    state = _FOR_STATE.match(plain)
    return [condition[:500] for condition in ([state[0].rstrip(",")] if state else []) + own][:10]
