"""Violations planted in real trajectories of tau-bench, and how many of them checks of its policies find.

    python -m benchmarks.policy_checks [--most N] [--out FILE]

Each check is broken in three ways in trajectories that do not break it; a planted one counts as found where the check
is reported at the step of the planted call. False alarms are counted on successful trajectories as they are: what a
check reports there that was not planted, for each check and trajectory whose calls it concerns. The checks were written
from the policies' text; retail is the held-out domain. Early: the same trajectories cut 1 to 5 agent steps before the
planted call.
"""

import argparse
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from benchmarks.policy_texts import AIRLINE_FILE, RETAIL_FILE, runs_of
from workers.engine.rules.policy_checks import Violation, passes, violations_of
from workers.schema import ScoreInput, Task, Trajectory, from_messages
from workers.schema.policy_checks import PolicyCheck, names_tool, parse_checks

Messages = list[dict[str, Any]]
DOMAINS = {"airline": AIRLINE_FILE, "retail": RETAIL_FILE}
WAYS = 3
EARLY = range(1, 6)
_KEPT = ("role", "content", "tool_calls", "tool_call_id", "name")


@dataclass(frozen=True, slots=True)
class Planted:
    """at: the place of the message with the call that breaks the check."""

    messages: Messages
    at: int


@dataclass(slots=True)
class Counts:
    planted: int = 0
    found: int = 0
    early: int = 0  # found 1 to 5 steps before
    clean: int = 0  # successful trajectories that the check concerns
    false_alarms: int = 0

    @property
    def precision(self) -> float:
        return self.found / (self.found + self.false_alarms) if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.found / self.planted if self.planted else 0.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def add(self, other: "Counts") -> None:
        for name in ("planted", "found", "early", "clean", "false_alarms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(slots=True)
class DomainResult:
    by_check: dict[str, Counts] = field(default_factory=dict)
    by_way: dict[int, Counts] = field(default_factory=dict)

    @property
    def all(self) -> Counts:
        total = Counts()
        for counts in self.by_check.values():
            total.add(counts)
        return total


def checks_of(domain: str) -> list[PolicyCheck]:
    path = Path(__file__).with_name(f"policy_checks_{domain}.yaml")
    return parse_checks(path.read_text(encoding="utf-8"))


def measure(domain: str, most: int) -> DomainResult:
    """most: planted trajectories for each check and way."""
    checks, result = checks_of(domain), DomainResult()
    runs = [(clean_messages(run["traj"]), run["reward"] == 1) for run in runs_of(DOMAINS[domain])]
    reported = [{found.check.name for found in violations(checks, run)} for run, _ in runs]
    for check in checks:
        counts = result.by_check[check.name] = Counts()
        for (run, is_success), names in zip(runs, reported, strict=True):
            if is_success and calls_of(check, run):
                counts.clean += 1
                counts.false_alarms += check.name in names
        for way in range(WAYS):
            own = Counts()
            for (run, _), names in zip(runs, reported, strict=True):
                if own.planted == most or check.name in names:
                    continue
                planted = plant(check, run, way)
                if planted is None:
                    continue
                own.planted += 1
                found = violations([check], planted.messages)
                own.found += any(each.step == _step_of(planted) for each in found)
                own.early += any(_found_early(check, planted, steps) for steps in EARLY)
            counts.add(own)
            result.by_way.setdefault(way, Counts()).add(own)
    return result


def violations(checks: list[PolicyCheck], messages: Messages) -> list[Violation]:
    return violations_of(checks, ScoreInput(content=trajectory_of(messages)))


def trajectory_of(messages: Messages) -> Trajectory:
    return Trajectory(steps=tuple(from_messages(messages)), task=Task(id="t"))


def calls_of(check: PolicyCheck, run: Messages) -> list[int]:
    """Places of the messages with a call of one of its tools, and with arguments that it concerns."""
    return [
        place
        for place, message in enumerate(run)
        for call in message.get("tool_calls") or []
        if check.concerns_tool(call["function"]["name"])
        and all(passes(test, json.loads(call["function"]["arguments"])) for test in check.when)
    ]


def plant(check: PolicyCheck, run: Messages, way: int) -> Planted | None:
    """None where the run has no call that could be made to break it."""
    run = copy.deepcopy(run)
    places = calls_of(check, run)
    if not places:  # other calls of its tools, with the arguments that it concerns
        places = calls_of(structs.replace(check, when=[]), run)
        for place in places[:1]:
            function = run[place]["tool_calls"][0]["function"]
            values = {test.path: test.one_of[0] for test in check.when if test.one_of}
            function["arguments"] = json.dumps(json.loads(function["arguments"]) | values)
    return _PLANTERS[check.demand](check, run, places[0], way) if places else None


def _without_confirmation(check: PolicyCheck, run: Messages, at: int, way: int) -> Planted | None:
    """The user refuses; the user asks about something else; the call comes before the agent said anything."""
    if way == 2:
        return _moved_to_front(run, at)
    asked = max((place for place in range(at) if run[place]["role"] == "user"), default=None)
    if asked is None:
        return None
    run[asked]["content"] = ("No, wait, I changed my mind.", "What is the weather like in Boston?")[way]
    return Planted(run, at)


def _without_previous(check: PolicyCheck, run: Messages, at: int, way: int) -> Planted | None:
    """The earlier calls are left out; the call comes first; the earlier ones were about another thing, or gave another
    result, or were of another tool."""
    needed = check.previous_call
    assert needed is not None
    earlier = [
        place
        for place, message in enumerate(run[:at])
        for call in message.get("tool_calls") or []
        if any(names_tool(each, call["function"]["name"]) for each in needed.tools)
    ]
    if not earlier:
        return None
    if way == 0:
        gone = {*earlier, *(place + 1 for place in earlier)}
        return Planted([each for place, each in enumerate(run) if place not in gone], at - len(gone))
    if way == 1:
        return _moved_to_front(run, at)
    for place in earlier:
        function = run[place]["tool_calls"][0]["function"]
        if needed.result:
            test, result = needed.result[0], run[place + 1]["content"]
            document = json.loads(result) if result.startswith("{") else {}
            document[test.path] = test.none_of[0] if test.none_of else "processed"
            run[place + 1]["content"] = json.dumps(document)
        elif needed.same:
            arguments = json.loads(function["arguments"])
            arguments[needed.same[0]] = "another"
            function["arguments"] = json.dumps(arguments)
        else:
            function["name"] = "think"
    return Planted(run, at)


def _with_argument(check: PolicyCheck, run: Messages, at: int, way: int) -> Planted | None:
    """Just beyond the limit; far beyond it; the argument is missing or empty of sense."""
    test = check.argument
    assert test is not None
    function = run[at]["tool_calls"][0]["function"]
    arguments = json.loads(function["arguments"])
    if test.measure == "count" and test.at_most is not None:
        own = arguments.get(test.path) or [{}]
        wanted = int(test.at_most) + (1, 2, 7)[way]
        arguments[test.path] = [own[place % len(own)] for place in range(wanted)]
    elif test.at_most is not None:
        arguments[test.path] = (test.at_most + 1, test.at_most * 10, "unlimited")[way]
    else:
        arguments[test.path] = ("changed my mind", "", None)[way]
    function["arguments"] = json.dumps(arguments)
    return Planted(run, at)


def _too_often(check: PolicyCheck, run: Messages, at: int, way: int) -> Planted | None:
    """The call again: at once; at the end; after the user asked for it."""
    again = copy.deepcopy(run[at : at + 2])
    again[0]["tool_calls"][0]["id"] = again[1]["tool_call_id"] = "again"
    place = at + 2 if way == 0 else len(run)
    asked = [{"role": "user", "content": "Yes, please do it once more."}] if way == 2 else []
    return Planted([*run[:place], *asked, *again, *run[place:]], place + len(asked))


def _several_calls(check: PolicyCheck, run: Messages, at: int, way: int) -> Planted | None:
    """The same call twice; three times; with another tool."""
    own = run[at]["tool_calls"][0]
    more = []
    for number in range((1, 2, 1)[way]):
        call = {**own, "id": f"more-{number}", "function": {**own["function"]}}
        if way == 2:
            call["function"] = {"name": "think", "arguments": "{}"}
        more.append(call)
    run[at]["tool_calls"] = [own, *more]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "{}"} for call in more]
    return Planted([*run[: at + 2], *results, *run[at + 2 :]], at)


def _with_message(check: PolicyCheck, run: Messages, at: int, way: int) -> Planted | None:
    run[at]["content"] = ("One moment.", "I am looking this up for you now. " * 20, "确认")[way]
    return Planted(run, at)


def _moved_to_front(run: Messages, at: int) -> Planted | None:
    first = next((place for place, message in enumerate(run) if message["role"] == "user"), None)
    if first is None or first + 1 >= at:
        return None
    moved = run[at : at + 2]
    return Planted([*run[: first + 1], *moved, *run[first + 1 : at], *run[at + 2 :]], first + 1)


_PLANTERS = {
    "confirmation": _without_confirmation,
    "previous_call": _without_previous,
    "argument": _with_argument,
    "most_calls": _too_often,
    "most_per_step": _several_calls,
    "alone": _with_message,
}


def _step_of(planted: Planted) -> int:
    """Of the message with the planted call: results of tools are part of the step that called them."""
    return len(trajectory_of(planted.messages[: planted.at]).steps) if planted.at else 0


def _found_early(check: PolicyCheck, planted: Planted, steps: int) -> bool:
    agents = [place for place in range(planted.at) if planted.messages[place]["role"] == "assistant"]
    if len(agents) < steps:
        return False
    return bool(violations([check], planted.messages[: agents[-steps] + 1]))


def clean_messages(run: Messages) -> Messages:
    return [{key: message[key] for key in _KEPT if key in message} for message in run]


def rows(result: DomainResult) -> Iterator[dict[str, Any]]:
    for name, counts in {**result.by_check, "all": result.all}.items():
        yield {
            "check": name,
            "planted": counts.planted,
            "found": counts.found,
            "found_1_to_5_steps_before": counts.early,
            "clean": counts.clean,
            "false_alarms": counts.false_alarms,
            "precision": round(counts.precision, 4),
            "recall": round(counts.recall, 4),
            "f1": round(counts.f1, 4),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--most", type=int, default=20, help="planted trajectories for each check and way")
    parser.add_argument("--out", type=Path, default=Path("policy_checks.json"))
    options = parser.parse_args()
    found = {domain: list(rows(measure(domain, options.most))) for domain in DOMAINS}
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
