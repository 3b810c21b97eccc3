"""Rules of a policy document in a folder, listed by a language model.

config.json     `PolicySplitConfig`
document.txt    the text
answers.jsonl   cached answers of the language model (workers.llm.client)
found.jsonl     {"part", "rules": [...]} or {"part", "problem"}, in the order they end
result.json     {"usage", "prompts", "parts"}
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from workers.errors import InvalidRecord
from workers.json_files import write_json
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.policy_rules.splitting import MAX_RULE_CHARACTERS, Category, FoundRule, Severity
from workers.prompts.templates import prompt, quoted
from workers.schema.patterns import SPACE, TextPattern
from workers.schema.patterns import quote as escaped

_PART_CHARACTERS = 6000
_HEADING = TextPattern(r"(?m)^(#{1,6})[ \t]+(.*?)[ \t]*#*$")


class PolicySplitConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    server: LLMServer


class ProposedRule(msgspec.Struct, frozen=True, kw_only=True):
    quote: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_RULE_CHARACTERS)]
    statement: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_RULE_CHARACTERS)]
    category: Category
    preconditions: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=500)]], msgspec.Meta(max_length=10)
    ] = []
    severity: Severity


class ProposedRules(msgspec.Struct, frozen=True, kw_only=True):
    rules: Annotated[list[ProposedRule], msgspec.Meta(max_length=200)]


@dataclass(frozen=True, slots=True)
class DocumentPart:
    start: int
    text: str
    scope: str


def list_rules(folder: Path) -> dict[str, Any]:
    """Everything between config.json and result.json; the result. Raises RewardError where no call can succeed."""
    config = msgspec.json.decode((folder / "config.json").read_bytes(), type=PolicySplitConfig)
    model = LLMClient(config.server, AnswersFile(folder / "answers.jsonl"))
    parts = document_parts((folder / "document.txt").read_text(encoding="utf-8"))
    with (folder / "found.jsonl").open("a", encoding="utf-8") as out:
        for part, found in model.each(parts, partial(rules_of_part, model)):
            line = (
                {"problem": found.message}
                if isinstance(found, NoAnswer)
                else {"rules": msgspec.to_builtins(found)}
            )
            out.write(json.dumps({"part": part.start} | line) + "\n")
            out.flush()
    result = {"usage": asdict(model.usage), "prompts": sorted(model.asked), "parts": len(parts)}
    write_json(folder / "result.json", result)
    return result


def rules_of_part(model: LLMClient, part: DocumentPart) -> list[FoundRule]:
    """Raises NoAnswer, RewardError."""
    asked = prompt("policy_rules", scope=quoted(part.scope), part=quoted(part.text))
    answer = model.ask(asked, ProposedRules, partial(_require_quotes, part))
    places = quote_places(part.text, [rule.quote for rule in answer.rules])
    return [
        FoundRule(
            start=part.start + place[0],
            end=part.start + place[1],
            statement=" ".join(rule.statement.split()),
            category=rule.category,
            severity=rule.severity,
            scope=part.scope,
            preconditions=rule.preconditions,
        )
        for rule, place in zip(answer.rules, places, strict=True)
        if place is not None
    ]


def quote_places(text: str, quotes: Sequence[str]) -> list[tuple[int, int] | None]:
    """start and end of each quote, whatever its white space; the first place that no equal quote has taken."""
    taken = set[int]()
    found: list[tuple[int, int] | None] = []
    for quote in quotes:
        words = TextPattern(f"[{SPACE}]+".join(map(escaped, quote.split())))
        place = next((each for each in words.finditer(text) if each.start() not in taken), None)
        if place is not None:
            taken.add(place.start())
        found.append(place.span() if place is not None else None)
    return found


def document_parts(text: str) -> list[DocumentPart]:
    """Sections under their headings, the long ones cut between paragraphs."""
    parts, headings, place = list[DocumentPart](), list[str](), 0
    bounds = [*_HEADING.finditer(text), None]
    for heading in bounds:
        end = heading.start() if heading is not None else len(text)
        parts += _cut(text, place, end, " › ".join(headings)[:300])
        if heading is not None:
            headings = [*headings[: len(heading[1]) - 1], heading[2]]
            place = heading.end()
    return parts


def _cut(text: str, start: int, end: int, scope: str) -> list[DocumentPart]:
    parts = []
    while end - start > _PART_CHARACTERS:
        cut = max(text.rfind(mark, start + 1, start + _PART_CHARACTERS) for mark in ("\n\n", "\n", ". "))
        cut = cut + 1 if cut > start else start + _PART_CHARACTERS
        parts.append(DocumentPart(start, text[start:cut], scope))
        start = cut
    return [part for part in [*parts, DocumentPart(start, text[start:end], scope)] if part.text.strip()]


def _require_quotes(part: DocumentPart, answer: ProposedRules) -> None:
    for index, place in enumerate(quote_places(part.text, [rule.quote for rule in answer.rules])):
        if place is None:
            raise InvalidRecord(
                "The quote is not in the document; copy it exactly.", pointer=f"/rules/{index}/quote"
            )
