"""The action language: one line of text is one tool call, `name key=value key="quoted value"`, or `reply "text"`."""

import json
from dataclasses import dataclass

from workers.schema.patterns import WORD, TextPattern

_NAME = TextPattern(r"\s*([a-z_]+)\s*")
_ARGUMENT = TextPattern(r'\s*([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)(?:\s|$)')
_QUOTED = TextPattern(r'(?s)\s*"((?:[^"\\]|\\.)*)"\s*$')
_WHOLE, _MONEY = TextPattern(r"\d{1,9}"), TextPattern(r"\d{1,7}(\.\d{1,2})?")
_PROTECTED = TextPattern(r"(?s)\\(.)")
_PLAIN = TextPattern(rf"[{WORD}.@+-]+")


@dataclass(frozen=True)
class Tool:
    """arguments: name to kind (`order`, `money`, `percent`, `text`), all required."""

    name: str
    arguments: dict[str, str]
    does: str

    @property
    def signature(self) -> str:
        if self.name in SPEAKING:
            return f'{self.name} "<text>"'
        return " ".join([self.name, *(f"{key}=<{kind}>" for key, kind in self.arguments.items())])


SPEAKING = ("ask", "reply")
TOOLS = {
    tool.name: tool
    for tool in (
        Tool("find_orders", {"email": "text"}, "lists the orders of a customer"),
        Tool(
            "lookup_order", {"order": "order"}, "shows an order: item, price, status, dates, customer, stock"
        ),
        Tool("track_shipment", {"order": "order"}, "shows where a parcel is and when it arrives"),
        Tool("list_charges", {"order": "order"}, "shows what was charged for an order"),
        Tool("search_policy", {"topic": "text"}, "shows the rules on a topic"),
        Tool("search_kb", {"query": "text"}, "searches the knowledge base on products and the shop"),
        Tool(
            "verify_customer", {"order": "order", "zip": "text"}, "compares a zip code with the one on file"
        ),
        Tool("refund", {"order": "order", "amount": "money", "reason": "text"}, "pays money back"),
        Tool("cancel_order", {"order": "order"}, "cancels an order that is not shipped"),
        Tool("change_address", {"order": "order", "address": "text"}, "changes where an order is delivered"),
        Tool("send_replacement", {"order": "order"}, "sends the ordered item again"),
        Tool("issue_coupon", {"order": "order", "percent": "percent"}, "gives a coupon for the next order"),
        Tool("escalate", {"order": "order", "reason": "text"}, "hands the case to a specialist"),
        Tool("ask", {"text": "text"}, "asks the customer something; the observation is the answer"),
        Tool("reply", {"text": "text"}, "the final answer; ends the conversation"),
    )
}


@dataclass(frozen=True)
class Action:
    name: str
    arguments: dict[str, str]

    @property
    def text(self) -> str:
        """The line that parses to this action."""
        if self.name in SPEAKING:
            return f"{self.name} {json.dumps(self.arguments['text'], ensure_ascii=False)}"
        return " ".join([self.name, *(f"{key}={_quote(value)}" for key, value in self.arguments.items())])


class MalformedAction(Exception):
    """The sentence the agent gets to read instead of a result."""


def parse(text: str) -> Action:
    """The action of a line. Raises Malformed with what is wrong and how it should look."""
    start = _NAME.match(text)
    if start is None or start[1] not in TOOLS:
        raise MalformedAction(f"unknown action; the actions are {', '.join(TOOLS)}.")
    tool, rest = TOOLS[start[1]], text[start.end() :]
    if tool.name in SPEAKING:
        return Action(tool.name, {"text": _speech(tool, rest)})
    arguments = _arguments(tool, rest)
    missing = [key for key in tool.arguments if key not in arguments]
    if missing:
        raise MalformedAction(f"{tool.name} needs {' and '.join(missing)}; write {tool.signature}.")
    return Action(tool.name, {key: _checked(tool, key, arguments[key]) for key in tool.arguments})


def _speech(tool: Tool, rest: str) -> str:
    quoted = _QUOTED.match(rest.removeprefix("text="))
    text = (_unescape(quoted[1]) if quoted else rest).strip()
    if not text:
        raise MalformedAction(f"{tool.name} needs a text; write {tool.signature}.")
    return text


def _arguments(tool: Tool, rest: str) -> dict[str, str]:
    found: dict[str, str] = {}
    while rest.strip():
        match = _ARGUMENT.match(rest)
        if match is None:
            raise MalformedAction(f"cannot read {rest.strip()[:40]!r}; write {tool.signature}.")
        key, value = match[1], match[2]
        if key not in tool.arguments or key in found:
            raise MalformedAction(f"{tool.name} takes {', '.join(tool.arguments)} once each; got {key}.")
        found[key] = _unescape(value[1:-1]) if value.startswith('"') else value
        rest = rest[match.end() :]
    return found


def _checked(tool: Tool, key: str, value: str) -> str:
    kind = tool.arguments[key]
    if kind == "text":
        return value
    number = value.removeprefix("#") if kind == "order" else value.removesuffix("%")
    pattern = _WHOLE if kind in ("order", "percent") else _MONEY
    if not pattern.fullmatch(number):
        raise MalformedAction(
            f"{key}={value[:40]!r} is not a number of the right form; write {tool.signature}."
        )
    return f"{float(number):.2f}" if kind == "money" else str(int(number))


def _unescape(text: str) -> str:
    """JSON's escapes where it is JSON; else a backslash just protects what follows it."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except json.JSONDecodeError:
        return _PROTECTED.sub(r"\1", text)


def _quote(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
