"""Which calls of a trajectory break which checks."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from workers.engine.rules.agent_text import agent_steps, message_of
from workers.engine.rules.tools import ParsedCall, message_without_calls, tool_calls
from workers.schema import ScoreInput, Step, Trajectory
from workers.schema.model_score import ModelScore
from workers.schema.part_text import parts_text
from workers.schema.patterns import compiled
from workers.schema.policy_checks import NO, PolicyCheck, PreviousCall, ValueTest, names_tool
from workers.schema.policy_part import PolicyChecks

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Violation:
    """step: its place in the trajectory. agent_step: among those of the agent. call: its place in the step."""

    check: PolicyCheck
    step: int
    agent_step: int
    call: int
    tool: str
    reason: str


@dataclass(slots=True)
class _PastCall:
    call: ParsedCall
    result: Any = None  # decoded JSON, or text


@dataclass(slots=True)
class CheckedRun:
    """What a trajectory has been so far, for checks of the next step. Time grows with the calls, not their square."""

    checks: Sequence[PolicyCheck]
    _past: dict[str, list[_PastCall]] = field(default_factory=dict)
    _counts: Counter[tuple[int, str]] = field(
        default_factory=Counter
    )  # of calls by check and values of `per`
    _user: str | None = None  # the newest message of the user
    _has_asked: bool = False  # the agent spoke before it
    _agent_spoke: bool = False
    _steps: int = 0
    _agent_steps: int = 0

    def violations(self, step: Step) -> list[Violation]:
        """Of the next step of the agent; the run does not have it yet."""
        calls = tool_calls(step)
        counts = Counter(self._counts)
        found = []
        for place, call in enumerate(calls):
            for index, check in enumerate(self.checks):
                if not self._concerns(check, call):
                    continue
                key = _group(index, check, call)
                counts[key] += 1
                if (reason := self._broken(check, call, step, len(calls), counts[key])) is not None:
                    found.append(Violation(check, self._steps, self._agent_steps, place, call.name, reason))
        return found

    def add(self, step: Step) -> None:
        self._steps += 1
        if step.source == "user":
            self._user, self._has_asked = message_of(step), self._agent_spoke
        if step.source != "agent":
            return
        self._agent_steps += 1
        self._agent_spoke = self._agent_spoke or bool(message_of(step).strip())
        results = [parts_text(result.content) for result in step.observation]
        by_id = {result.call_id: text for result, text in zip(step.observation, results, strict=True)}
        ids = [call.id for call in step.tool_calls]
        for place, call in enumerate(tool_calls(step)):
            for index, check in enumerate(self.checks):
                if check.most_calls is not None and self._concerns(check, call):
                    self._counts[_group(index, check, call)] += 1
            own = ids[place] if place < len(ids) else None
            text = by_id.get(own) if own is not None else None
            if text is None and place < len(results):
                text = results[place]
            self._past.setdefault(call.name, []).append(_PastCall(call, _decoded(text)))

    def _concerns(self, check: PolicyCheck, call: ParsedCall) -> bool:
        """Arguments that are no JSON object could be anything: every check of the tool concerns them."""
        if not check.concerns_tool(call.name):
            return False
        return call.arguments is None or all(passes(test, call.arguments) for test in check.when)

    def _broken(self, check: PolicyCheck, call: ParsedCall, step: Step, calls: int, count: int) -> str | None:
        """Why the call breaks the check; None where it does not."""
        if check.forbid:
            return f"{call.name} is forbidden here."
        if check.argument is not None:
            ok = passes(check.argument, call.arguments or {})
            return None if ok else f"{call.name}: {demand_text(check.argument)}."
        if check.previous_call is not None:
            return self._missing_call(check.previous_call, call)
        if check.confirmation is not None:
            if self._user is None or not self._has_asked or not _agrees(self._user, check.confirmation.words):
                return f"{call.name} needs the user's confirmation first."
            return None
        if check.most_calls is not None and count > check.most_calls:
            return (
                f"{call.name} is called for the {count}th time; at most {check.most_calls} calls are allowed."
            )
        if check.most_per_step is not None and calls > check.most_per_step:
            return f"{calls} calls in one step; at most {check.most_per_step} are allowed."
        if check.alone and message_without_calls(step):
            return f"{call.name} is called together with a message to the user."
        return None

    def _missing_call(self, needed: PreviousCall, call: ParsedCall) -> str | None:
        arguments = call.arguments or {}
        past = [
            each
            for name, calls in self._past.items()
            if any(names_tool(written, name) for written in needed.tools)
            for each in calls
            if all(
                key in arguments and (each.call.arguments or {}).get(key, _MISSING) == arguments[key]
                for key in needed.same
            )
        ]
        tools = " or ".join(needed.tools)
        if not past:
            same = f" with the same {', '.join(needed.same)}" if needed.same else ""
            return f"{call.name} needs an earlier call of {tools}{same}."
        result = past[-1].result
        for test in needed.result:
            if not passes(test, result if isinstance(result, dict) else {}):
                return f"{call.name} needs a result of {tools} where {demand_text(test)}."
        return None


def _group(index: int, check: PolicyCheck, call: ParsedCall) -> tuple[int, str]:
    arguments = call.arguments or {}
    return index, json.dumps([arguments.get(name) for name in check.per], sort_keys=True)


def violations_of(checks: Sequence[PolicyCheck], item: ScoreInput) -> list[Violation]:
    """In the order of the steps. An item that is no trajectory is one step of the agent."""
    content = item.content
    steps = content.steps if isinstance(content, Trajectory) else agent_steps(item)
    found, run = list[Violation](), CheckedRun(checks)
    for step in steps:
        if step.source == "agent":
            found += run.violations(step)
        run.add(step)
    return found


def rate(part: PolicyChecks, item: ScoreInput, count: Callable[[str], int]) -> ModelScore:
    """Minus the share of checks that are broken, each paid at the step that first breaks it: -1 to 0."""
    earned = [0.0] * item.step_count
    seen = set[str]()
    for violation in violations_of(part.checks, item):
        if violation.check.name not in seen:
            seen.add(violation.check.name)
            earned[violation.agent_step] -= 1 / len(part.checks)
    return ModelScore.sum_of_steps(earned)


def passes(test: ValueTest, value: Mapping[str, Any]) -> bool:
    """Whether the demands of a test hold for a JSON object; none does where its path leads nowhere, but to a count of
    nothing."""
    values = [each for each in _at(value, test.path.split(".")) if each is not _MISSING]
    if test.measure == "count":
        only = values[0] if len(values) == 1 and "*" not in test.path else None
        number = len(only) if isinstance(only, list | dict | str) else len(values)
        return _holds(test, float(number))
    if test.measure == "sum":
        numbers = [_number(each) for each in values]
        return bool(numbers) and None not in numbers and _holds(test, float(sum(filter(None, numbers))))
    return bool(values) and all(_holds(test, each) for each in values)


def demand_text(test: ValueTest) -> str:
    """In words, what is demanded."""
    of = {"value": test.path, "count": f"the number of {test.path}", "sum": f"the sum of {test.path}"}[
        test.measure
    ]
    words = {
        "at_least": "is at least",
        "at_most": "is at most",
        "one_of": "is one of",
        "none_of": "is none of",
        "matches": "matches",
        "hosts": "is a URL of",
    }
    parts = [f"{words[name]} {_plain(getattr(test, name))}" for name in test.demands]
    return f"{of} {' and '.join(parts)}"


def _plain(value: Any) -> str:
    return (
        ", ".join(map(_plain, value))
        if isinstance(value, list)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _holds(test: ValueTest, value: Any) -> bool:
    number = _number(value)
    if test.at_least is not None and (number is None or number < test.at_least):
        return False
    if test.at_most is not None and (number is None or number > test.at_most):
        return False
    if test.one_of is not None and not any(_equal(value, each) for each in test.one_of):
        return False
    if test.none_of is not None and any(_equal(value, each) for each in test.none_of):
        return False
    if test.matches is not None and compiled(test.matches).search(_text(value)) is None:
        return False
    return test.hosts is None or _is_on(_text(value), test.hosts)


def _is_on(url: str, hosts: Sequence[str]) -> bool:
    try:
        parsed = urlsplit(url if "//" in url else f"//{url}")
        host = (parsed.hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if not host or "\\" in url or any(letter.isspace() for letter in url):
        return False
    return any(
        host == allowed.lower() or (allowed.startswith("*.") and host.endswith(allowed[1:].lower()))
        for allowed in hosts
    )


def _at(value: Any, path: Sequence[str]) -> Iterator[Any]:
    waiting: list[Any] = [value]
    for key in path:
        following: list[Any] = []
        for each in waiting:
            if key == "*":
                following += (
                    each if isinstance(each, list) else list(each.values()) if isinstance(each, dict) else []
                )
            elif isinstance(each, dict) and key in each:
                following.append(each[key])
            elif isinstance(each, list) and key.isdecimal() and int(key) < len(each):
                following.append(each[int(key)])
        waiting = following
    yield from waiting


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) and len(value) < 40 else None
    except ValueError:
        return None


def _equal(value: Any, other: Any) -> bool:
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _agrees(message: str, words: str) -> bool:
    return compiled(NO).search(message) is None and compiled(words).search(message) is not None


def _decoded(text: str | None) -> Any:
    try:
        return json.loads(text) if text else text
    except (ValueError, RecursionError):
        return text
