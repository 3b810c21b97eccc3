"""Checks that contradict each other, or that can never decide anything: by intervals and sets of values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workers.schema.policy_checks import PolicyCheck, Scalar, ValueTest, names_tool


@dataclass(frozen=True, slots=True)
class CheckConflict:
    """contradiction: no call of the tool can pass. unreachable: the check never decides. checks: their names."""

    kind: Literal["contradiction", "unreachable"]
    checks: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class _Values:
    """What one path can be: numbers from low to high, or only some values, and not others."""

    low: float = -math.inf
    high: float = math.inf
    only: frozenset[Scalar] | None = None
    without: frozenset[Scalar] = frozenset()

    def narrowed(self, test: ValueTest) -> "_Values":
        only = self.only
        if test.one_of is not None:
            only = frozenset(test.one_of) if only is None else only & frozenset(test.one_of)
        return _Values(
            max(self.low, -math.inf if test.at_least is None else test.at_least),
            min(self.high, math.inf if test.at_most is None else test.at_most),
            only,
            self.without | frozenset(test.none_of or ()),
        )

    @property
    def is_empty(self) -> bool:
        if self.low > self.high:
            return True
        return self.only is not None and not any(self._has(value) for value in self.only)

    def _has(self, value: Scalar) -> bool:
        if value in self.without:
            return False
        if isinstance(value, bool | str):
            return self.low == -math.inf and self.high == math.inf
        return self.low <= value <= self.high

    def within(self, other: "_Values") -> bool:
        """Whether each value that this allows is allowed by the other."""
        if self.only is not None:
            return all(other._allows(value) for value in self.only if self._has(value))
        if other.only is not None or not other.without <= self.without:
            return False
        return other.low <= self.low and self.high <= other.high

    def _allows(self, value: Scalar) -> bool:
        return self._has(value) and (self.only is None or value in self.only)


def find_conflicts(checks: Sequence[PolicyCheck]) -> list[CheckConflict]:
    """In the order of the checks. Expressions and hosts are not reasoned about, and no conflict is claimed of them."""
    found = list[CheckConflict]()
    for check in checks:
        if _is_never(check.when):
            found.append(
                CheckConflict(
                    "unreachable", (check.name,), f"{check.name} concerns no call: its `when` never holds."
                )
            )
    usable = [check for check in checks if not _is_never(check.when)]
    found += _after_forbidden(usable)
    found += _argument_conflicts(usable)
    found += _order_conflicts(usable)
    return found


def _after_forbidden(checks: Sequence[PolicyCheck]) -> list[CheckConflict]:
    """Checks of calls that another one forbids whatever they hold, and calls that need such a call first."""
    found = []
    forbidden = [check for check in checks if check.forbid and check.effect == "deny"]
    for check in checks:
        for other in forbidden:
            if other is check:
                continue
            if _covers(other, check) and _implies(check.when, other.when):
                sentence = f"{check.name} never decides: {other.name} forbids every call it concerns."
                found.append(CheckConflict("unreachable", (check.name, other.name), sentence))
                break
        needed = check.previous_call.tools if check.previous_call is not None else []
        blockers = [other for other in forbidden if not other.when]
        blocking = [_forbidding(tool, blockers) for tool in needed]
        if needed and all(blocking):
            names = tuple(dict.fromkeys(other.name for other in blocking if other is not None))
            sentence = f"{check.name} can never be met: {', '.join(names)} forbids {' and '.join(needed)}."
            found.append(CheckConflict("contradiction", (check.name, *names), sentence))
    return found


def _forbidding(tool: str, forbidden: Sequence[PolicyCheck]) -> PolicyCheck | None:
    return next((other for other in forbidden if any(_includes(each, tool) for each in other.tools)), None)


def _argument_conflicts(checks: Sequence[PolicyCheck]) -> list[CheckConflict]:
    found = []
    own = [check for check in checks if check.argument is not None and check.effect == "deny"]
    for place, check in enumerate(own):
        for other in own[:place]:
            first, second = other.argument, check.argument
            assert first is not None and second is not None
            if (first.path, first.measure) != (second.path, second.measure) or not _meet(other, check):
                continue
            if _is_never([*other.when, *check.when]):
                continue
            both = _Values().narrowed(first).narrowed(second)
            if both.is_empty:
                sentence = f"{other.name} and {check.name} cannot both be met by {first.path}."
                found.append(CheckConflict("contradiction", (other.name, check.name), sentence))
                continue
            for looser, tighter in ((other, check), (check, other)):
                if _is_redundant(looser, tighter):
                    sentence = f"{looser.name} never decides: {tighter.name} allows less."
                    found.append(CheckConflict("unreachable", (looser.name, tighter.name), sentence))
                    break
    for check in checks:  # a `when` on what another check forbids
        for other in own:
            test = other.argument
            if (
                other is check
                or test is None
                or not (_covers(other, check) and _implies(check.when, other.when))
            ):
                continue
            same = [each for each in check.when if (each.path, each.measure) == (test.path, test.measure)]
            if same and _is_never([*same, test]):
                sentence = f"{check.name} never decides: {other.name} denies every call it concerns."
                found.append(CheckConflict("unreachable", (check.name, other.name), sentence))
    return found


def _is_redundant(looser: PolicyCheck, tighter: PolicyCheck) -> bool:
    first, second = looser.argument, tighter.argument
    assert first is not None and second is not None
    if set(first.demands) & {"matches", "hosts"}:
        return False
    if not (_covers(tighter, looser) and _implies(looser.when, tighter.when)):
        return False
    return _Values().narrowed(second).within(_Values().narrowed(first))


def _order_conflicts(checks: Sequence[PolicyCheck]) -> list[CheckConflict]:
    """Tools that need each other first: no call of any of them can be the first one."""
    needs: dict[str, list[tuple[str, str]]] = {}  # tool: (what it needs, check)
    for check in checks:
        if (
            check.previous_call is None
            or check.when
            or check.effect != "deny"
            or len(check.previous_call.tools) > 1
        ):
            continue
        for tool in check.tools:
            needs.setdefault(tool, []).append((check.previous_call.tools[0], check.name))
    found, seen = list[CheckConflict](), set[frozenset[str]]()
    for tool in needs:
        path = _cycle(tool, needs)
        if path and frozenset(path) not in seen:
            seen.add(frozenset(path))
            sentence = f"{', '.join(path)} need each other's calls first: none of them can ever be met."
            found.append(CheckConflict("contradiction", tuple(path), sentence))
    return found


def _cycle(start: str, needs: dict[str, list[tuple[str, str]]]) -> list[str]:
    """The checks on a way from a tool back to it; empty without one."""
    waiting, seen = [(start, list[str]())], set[str]()
    while waiting:
        tool, path = waiting.pop()
        for needed, name in needs.get(tool, ()):
            if needed == start:
                return [*path, name]
            if needed not in seen:
                seen.add(needed)
                waiting.append((needed, [*path, name]))
    return []


def _is_never(tests: Sequence[ValueTest]) -> bool:
    """Whether no object can pass them all."""
    values: dict[tuple[str, str], _Values] = {}
    for test in tests:
        key = (test.path, test.measure)
        values[key] = values.get(key, _Values()).narrowed(test)
    return any(each.is_empty for each in values.values())


def _implies(narrow: Sequence[ValueTest], wide: Sequence[ValueTest]) -> bool:
    """Whether whatever passes `narrow` passes `wide`; False where that is not sure."""
    for test in wide:
        if test in narrow:
            continue
        if set(test.demands) & {"matches", "hosts"}:
            return False
        known = _Values()
        same = [each for each in narrow if (each.path, each.measure) == (test.path, test.measure)]
        for each in same:
            known = known.narrowed(each)
        if not same or not known.within(_Values().narrowed(test)):
            return False
    return True


def _covers(other: PolicyCheck, check: PolicyCheck) -> bool:
    """Whether `other` concerns every tool that `check` does."""
    return all(any(_includes(wide, narrow) for wide in other.tools) for narrow in check.tools)


def _meet(first: PolicyCheck, second: PolicyCheck) -> bool:
    return any(_includes(a, b) or _includes(b, a) for a in first.tools for b in second.tools)


def _includes(wide: str, narrow: str) -> bool:
    if narrow.endswith("*"):
        return wide.endswith("*") and narrow.startswith(wide[:-1])
    return names_tool(wide, narrow)
