"""A language model made of rules: it reads a judge's question line by line, and judges by what came back.

It is as easily taken in as its question lets it be: a line that is no JSON, or a step twice, is the question's fault.
"""

import json
import re
from typing import Any

from tests.workers.judge.scripted import Body

BAD = re.compile(r"\bfailed\b")


def judged(body: Body) -> str:
    """The answer to a question of `score` or `compare`: a run loses a point for each step where `failed` came back."""
    criteria, runs = read(body)
    if len(runs) == 1:
        (failures,) = runs
        return json.dumps({one["key"]: scored(one, failures) for one in criteria})
    a, b = map(len, runs)
    better = "tie" if a == b else "A" if a < b else "B"
    said = {
        "reason": f"A failed {a} times, B {b} times.",
        "step_a": next(iter(runs[0]), None),
        "step_b": next(iter(runs[1]), None),
        "better": better,
    }
    return json.dumps({one["key"]: said for one in criteria})


def scored(criterion: dict[str, Any], failures: list[int]) -> dict[str, Any]:
    points = criterion["scores"]
    return {
        "reason": f"{len(failures)} failed.",
        "step": next(iter(failures), None),
        "score": points[max(len(points) - 1 - len(failures), 0)],
    }


def read(body: Body) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The criteria, and of each run the steps of which `failed` came back."""
    system, user = body["messages"][:2]
    assert system["role"] == "system" and user["role"] == "user"
    sections: list[list[str]] = []
    for line in user["content"].split("\n"):
        if re.fullmatch(r"(The criteria, one|The run, a step|Run [AB], a step) on each line:", line):
            sections.append([])
        elif sections and line:
            sections[-1].append(line)
    criteria, *runs = ([json.loads(line) for line in section] for section in sections)
    failures = []
    for run in runs:
        task, *steps = run
        assert list(task) == ["task"], task
        numbers = [step["step"] for step in steps if "step" in step]
        assert numbers == sorted(set(numbers)), "a step came twice, or out of its turn"
        failures.append([step["step"] for step in steps if BAD.search(step.get("got back", ""))])
    return criteria, failures
