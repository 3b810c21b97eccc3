"""A language model of rules: it says of polite and rude runs what is to be said, and knows two metrics."""

import json
import re
from typing import Any

from tests.workers.llm.scripted import Body

TONE, SUMS = "Tone of the reply", "Sums that add up"


def kind(body: Body) -> str:
    """Which prompt it is: ground, propose, place, judge or match."""
    system = body["messages"][0]["content"]
    starts = {
        "You take apart": "ground",
        "You put what": "propose",
        "You say which": "place",
        "You judge": "judge",
        "You compare": "match",
    }
    return next(name for start, name in starts.items() if system.startswith(start))


def data(body: Body) -> str:
    return str(body["messages"][1]["content"])


def answer(body: Body) -> str:
    return json.dumps(_ANSWERS[kind(body)](data(body)))


def rows(text: str, key: str) -> list[dict[str, Any]]:
    """The lines that are JSON objects with this key."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [finding for finding in found if key in finding]


def _ground(text: str) -> dict[str, Any]:
    comment = json.loads(re.findall(r"^The comment: (.*)$", text, re.M)[-1])
    steps = json.loads(re.findall(r"^Steps a point may be about: (.*)$", text, re.M)[-1])
    points = [part.strip() for part in re.split(r"(?<=[.!])\s", comment) if part.strip(" .")]
    return {
        "points": [
            {"feedback": point, "sign": 1 if _praises(point) else -1, "step": steps[0] if steps else None}
            for point in points
        ]
    }


def _propose(text: str) -> dict[str, Any]:
    count = int(re.findall(r"at most (\d+)", text)[0])
    points = rows(text, "point")
    known = json.loads(re.findall(r"given again: (.*)$", text, re.M)[0])
    by = {
        TONE: [point["point"] for point in points if "sum" not in point["feedback"].lower()],
        SUMS: [point["point"] for point in points if "sum" in point["feedback"].lower()],
    }
    if count == 1:
        by = {"Everything": [point["point"] for point in points]}
    metrics = [
        {"name": name, "definition": f"Good: {name}.", "points": found}
        for name, found in by.items()
        if found and name not in known
    ]
    return {"metrics": metrics or [{"name": f"Rest {len(known)}", "definition": "x", "points": [0]}]}


def _place(text: str) -> dict[str, Any]:
    metrics = {row["name"]: row["metric"] for row in rows(text, "name")}
    return {
        "places": [
            {"point": row["point"], "metric": metrics.get(SUMS if "sum" in row["feedback"].lower() else TONE)}
            for row in rows(text, "feedback")
        ]
    }


def _judge(text: str) -> dict[str, Any]:
    steps = json.loads(re.findall(r"^Steps of the agent: (.*)$", text, re.M)[0])
    polite = "glad" in text
    return {
        "verdicts": [
            {
                "metric": row["metric"],
                "sign": (1 if polite else -1) if row["name"] == TONE else 0,
                "step": steps[0] if row["name"] == TONE else None,
                "reason": "The reply says so." if row["name"] == TONE else "",
            }
            for row in rows(text, "definition")
        ]
    }


def _match(text: str) -> dict[str, Any]:
    findings = rows(text, "finding")
    return {
        "matches": [
            {"point": point["point"], "finding": found["finding"]}
            for point in rows(text, "point")
            for found in findings
            if point["sign"] == found["sign"]
            and ("sum" in point["feedback"].lower()) == (found["metric"] == SUMS)
        ]
    }


def _praises(point: str) -> bool:
    blame = ("rude", "insulting", "unfriendly", "never", "without", "did not")
    return not any(word in point.lower() for word in blame)


_ANSWERS = {"ground": _ground, "propose": _propose, "place": _place, "judge": _judge, "match": _match}
