"""Checks of an agent's tool calls: what a rule of a policy demands of a call, in a few fixed forms. Nothing is run."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import yaml

from workers.errors import InvalidRecord
from workers.schema.decode import convert
from workers.schema.patterns import compiled

MAX_CHECKS = 200
CheckName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
ToolName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Scalar = str | float | bool
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
YES = (
    r"(?i)\b(?:yes|yeah|yep|sure|confirm|confirmed|correct|proceed|go ahead|please do|ok|okay|sounds good|agree|agreed|"
    r"that works|absolutely|definitely|perfect)\b"
)
NO = r"(?i)^\s*(?:no\b|not\b|wait\b|stop\b|don't\b|do not\b|hold on\b)"


class ValueTest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is demanded of a value of a JSON object. path: keys with dots between, `*` for all of a list, such as
    `payment_methods.*.amount`. measure: of the value itself (of each where the path has a `*`), how many there are, or
    their sum. Of the demands, those that are given must all hold. matches: RE2, found in the value. hosts: of a URL; a
    host or `*.domain`. With a value that is not there, no demand holds, and a count is 0.
    """

    path: _Path
    measure: Literal["value", "count", "sum"] = "value"
    at_least: float | None = None
    at_most: float | None = None
    one_of: list[Scalar] | None = None
    none_of: list[Scalar] | None = None
    matches: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)] | None = None
    hosts: list[ToolName] | None = None

    @property
    def demands(self) -> list[str]:
        names = ("at_least", "at_most", "one_of", "none_of", "matches", "hosts")
        return [name for name in names if getattr(self, name) is not None]


class PreviousCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An earlier call of one of these tools. same: arguments that both calls have, and that must be equal. result: what
    is demanded of the JSON result of the newest such call."""

    tools: Annotated[list[ToolName], msgspec.Meta(min_length=1, max_length=50)]
    same: list[ToolName] = []
    result: list[ValueTest] = []


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest message of the user answers a message of the agent and agrees. words: RE2, found in it; those for yes
    without it. A message that begins with a refusal never agrees."""

    words: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)] = YES


class PolicyCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One demand on calls of some tools. tools: names; one that ends with `*` is a beginning. when: the check concerns
    only calls whose arguments pass these tests. effect: of a call that breaks it. reason: for people and the agent.

    Of the demands, exactly one: forbid; argument; previous_call; confirmation; most_calls, in a trajectory, this one
    included, and with equal arguments `per` where it names some; most_per_step, calls of any tool in the same step;
    alone, no message to the user in the same step.
    """

    name: CheckName
    tools: Annotated[list[ToolName], msgspec.Meta(min_length=1, max_length=50)]
    effect: Literal["deny", "ask"] = "deny"
    reason: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    when: Annotated[list[ValueTest], msgspec.Meta(max_length=20)] = []
    forbid: Literal[True] | None = None
    argument: ValueTest | None = None
    previous_call: PreviousCall | None = None
    confirmation: Confirmation | None = None
    most_calls: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    per: Annotated[list[ToolName], msgspec.Meta(max_length=10)] = []
    most_per_step: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    alone: Literal[True] | None = None

    @property
    def demand(self) -> str:
        return next(name for name in DEMANDS if getattr(self, name) is not None)

    def concerns_tool(self, name: str) -> bool:
        return any(names_tool(each, name) for each in self.tools)


DEMANDS = ("forbid", "argument", "previous_call", "confirmation", "most_calls", "most_per_step", "alone")


def names_tool(written: str, name: str) -> bool:
    return name.startswith(written[:-1]) if written.endswith("*") else name == written


def require_checks(checks: Sequence[PolicyCheck]) -> None:
    """Raises InvalidRecord, with a pointer, for what the types do not rule out."""
    if len(checks) > MAX_CHECKS:
        raise InvalidRecord(f"There are {len(checks)} checks; at most {MAX_CHECKS} are allowed.")
    seen = set[str]()
    for place, check in enumerate(checks):
        if check.name in seen:
            raise InvalidRecord(
                f"Duplicate check {check.name!r}; give each its own name.", pointer=f"/{place}/name"
            )
        seen.add(check.name)
        given = [name for name in DEMANDS if getattr(check, name) is not None]
        if len(given) != 1:
            has = f"has {', '.join(given)}" if given else "has none"
            raise InvalidRecord(
                f"a check has exactly one of {', '.join(DEMANDS)}; this one {has}.", pointer=f"/{place}"
            )
        if check.per and check.most_calls is None:
            raise InvalidRecord("`per` belongs to `most_calls`.", pointer=f"/{place}/per")
        tests = [(f"/{place}/when/{index}", test) for index, test in enumerate(check.when)]
        if check.argument is not None:
            tests.append((f"/{place}/argument", check.argument))
        if check.previous_call is not None:
            found = enumerate(check.previous_call.result)
            tests += [(f"/{place}/previous_call/result/{index}", test) for index, test in found]
        for at, test in tests:
            require_test(test, at)
        if check.confirmation is not None:
            require_expression(check.confirmation.words, f"/{place}/confirmation/words")


def require_test(test: ValueTest, at: str) -> None:
    """Raises InvalidRecord with the pointer `at`."""
    if not test.demands:
        raise InvalidRecord("a test needs at_least, at_most, one_of, none_of, matches or hosts.", pointer=at)
    numbers = [test.at_least, test.at_most, *(test.one_of or ()), *(test.none_of or ())]
    if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
        raise InvalidRecord("must be a number, not infinity or NaN.", pointer=at)
    if test.at_least is not None and test.at_most is not None and test.at_least > test.at_most:
        raise InvalidRecord(
            f"no number is at least {test.at_least:g} and at most {test.at_most:g}.", pointer=f"{at}/at_least"
        )
    if test.measure != "value" and set(test.demands) - {"at_least", "at_most", "one_of", "none_of"}:
        raise InvalidRecord(f"a {test.measure} is a number; test it with at_least or at_most.", pointer=at)
    if test.matches is not None:
        require_expression(test.matches, f"{at}/matches")
    for name in ("one_of", "hosts"):
        if getattr(test, name) == []:
            raise InvalidRecord("an empty list allows nothing; use `forbid`.", pointer=f"{at}/{name}")


def require_expression(expression: str, at: str) -> Any:
    """The expression, compiled. Raises InvalidRecord with the pointer `at`."""
    try:
        return compiled(expression)
    except InvalidRecord as error:
        raise InvalidRecord(error.message, pointer=at) from None


def parse_checks(text: str) -> list[PolicyCheck]:
    """Checks as YAML or JSON: a list. Raises InvalidRecord with the pointer, and the line in the message."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        rows = yaml.safe_load(text) if len(text) <= 500_000 else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise InvalidRecord(f"This is no YAML{where}: {getattr(error, 'problem', error)}.") from None
    if not isinstance(rows, list):
        raise InvalidRecord("Checks are a list: each begins with `- name: ...`.")
    if "&" in text and _has_alias(root):
        raise InvalidRecord("Anchors and aliases of YAML are not read; write the values out.")
    try:
        checks = [convert_check(row, place) for place, row in enumerate(rows)]
        require_checks(checks)
    except InvalidRecord as error:
        line = _line_of(root, error.pointer or "")
        raise InvalidRecord(f"Line {line}: {error.message}", pointer=error.pointer) from None
    return checks


def convert_check(row: Any, place: int) -> PolicyCheck:
    try:
        return convert(row, PolicyCheck)
    except InvalidRecord as error:
        raise error.at(f"/{place}") from None


def check_values(check: PolicyCheck) -> dict[str, Any]:
    """As JSON, without what is not given."""
    return given_values(check)


def given_values(struct: msgspec.Struct) -> dict[str, Any]:
    """As JSON, without what is null or empty."""
    return {key: value for key, value in _given(msgspec.to_builtins(struct)).items() if value not in ([], "")}


def _given(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _given(each) for key, each in value.items() if each is not None}
    return [_given(each) for each in value] if isinstance(value, list) else value


def checks_text(checks: Sequence[PolicyCheck]) -> str:
    """As YAML, which `parse_checks` reads."""
    rows = [check_values(check) for check in checks]
    return str(yaml.safe_dump(rows, sort_keys=False, allow_unicode=True)) if rows else ""


def _has_alias(node: Any) -> bool:
    """Whether a node stands in two places."""
    seen, waiting = set[int](), [node]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            return True
        seen.add(id(each))
        if isinstance(each, yaml.MappingNode):
            waiting += [part for pair in each.value for part in pair]
        elif isinstance(each, yaml.SequenceNode):
            waiting += each.value
    return False


def _line_of(node: Any, pointer: str) -> int:
    """The line of the deepest part of `pointer` that is there."""
    line = node.start_mark.line
    for part in pointer.split("/")[1:]:
        if isinstance(node, yaml.SequenceNode) and part.isdecimal() and int(part) < len(node.value):
            node = node.value[int(part)]
        elif isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == part]
            if not found:
                break
            line = found[0][0].start_mark.line
            node = found[0][1]
            continue
        else:
            break
        line = node.start_mark.line
    return int(line) + 1
