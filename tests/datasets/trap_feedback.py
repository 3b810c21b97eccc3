"""Feedback of every kind on trajectories that exports get wrong: calls, pictures, thoughts, speakers, empty texts."""

import io
import json
from typing import Any

from apps.accounts.models import Project
from apps.annotation.feedback.services import import_feedback
from apps.trajectories.services import import_trajectories
from tests.trajectories.benchmarks.run_documents import EPISODE

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5E"
    "rkJggg=="
)
UNICODE = 'Größe "7" <b>\u2028 短い 👩‍🚀 {{x}} \\n'
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def user(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def agent(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def call(
    name: str, arguments: dict[str, Any], text: str = "", id: str = "c1", **fields: Any
) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return agent(text, tool_calls=[{"id": id, "type": "function", "function": function}], **fields)


def result(text: str, id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def messages(*of: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": list(of), **fields}


SYSTEM = {"role": "system", "content": "You are a clerk."}
ASK = user("Do I need an umbrella in Ulm?")
LOOK = [
    SYSTEM,
    ASK,
    call("weather", {"city": "Ulm"}, reasoning_content="Look it up."),
    result('{"rain": true}'),
]
CALLS = messages(*LOOK, agent("Yes, it rains."), user("And now?"), call("weather", {}, "Wait."), result("3"),
                 agent("No."), metadata={"tools": [WEATHER]})  # fmt: skip
GUESS = messages(SYSTEM, ASK, agent("No idea."))
PICTURE = [
    user([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}])
]
TALK = [
    user("Who begins?", name="Ann"),
    agent("I do.", name="Bo"),
    agent("No, I.", name="Cy"),
    user("?", name="Dee"),
]
ALIKE = messages(
    ASK, agent([{"type": "image_url", "image_url": {"url": PIXEL}}, {"type": "text", "text": "This."}])
)


def say(project: Project, format: str, *records: dict[str, Any]) -> None:
    stream = io.BytesIO("".join(json.dumps(record) + "\n" for record in records).encode())
    result = import_feedback(project=project, stream=stream, format=format, by=None)
    assert not result.rejected, result.rejected


def pair(task: str, a: Any, b: Any, choice: str = "a", **fields: Any) -> dict[str, Any]:
    return {"task": {"id": task}, "a": a, "b": b, "choice": choice, "annotator": "ann", **fields}


def one(task: str, trajectory: Any, **fields: Any) -> dict[str, Any]:
    return {"task": {"id": task}, "trajectory": trajectory, "annotator": "ann", **fields}


def plain_run(*answers: str) -> dict[str, Any]:
    turns = [message for answer in answers for message in (user(f"Say {answer}."), agent(answer))]
    return messages(*turns)


PLAIN = plain_run("one", "two", "three")


def import_numbers(project: Project) -> list[dict[str, str]]:
    """Two episodes of numbers, as items."""
    episodes = [EPISODE | {"id": 4}, EPISODE | {"id": 5, "rewards": [-1.0, -2.0]}]
    lines = "".join(json.dumps(episode) + "\n" for episode in episodes)
    import_trajectories(project=project, stream=io.BytesIO(lines.encode()), by=None)
    return [{"trajectory_id": str(episode["id"])} for episode in episodes]


def import_traps(project: Project) -> None:
    numbers = import_numbers(project)
    say(
        project,
        "pairs",
        pair("plain", messages(ASK, agent("Yes.")), messages(ASK, agent("No."))),
        pair("calls", CALLS, GUESS),
        pair("picture", messages(*PICTURE, agent("A dot.")), messages(*PICTURE, agent("A cat."))),
        pair(
            "talk", messages(*TALK, agent("Right.", name="Bo")), messages(*TALK, agent("Wrong.", name="Bo"))
        ),
        pair("empty", messages(ASK, agent("Yes.")), messages(ASK, agent(""))),
        pair("unicode", messages(user(UNICODE), agent(UNICODE)), messages(user(UNICODE), agent("?"))),
        # Written, the sides are alike: they differ in a picture of the agent, which is named in the text.
        pair("equal", ALIKE, messages(ASK, agent("[image]\nThis."))),
        {"a": numbers[0], "b": numbers[1], "choice": "a", "annotator": "ann"},
        pair("tie", messages(ASK, agent("Yes.")), messages(ASK, agent("Yes!")), "tie"),
    )
    say(
        project,
        "ratings",
        one("plain", PLAIN, accept=True),
        one("calls", CALLS, accept=True),
        one("calls", CALLS, accept=True, annotator="ben"),
        one("calls", CALLS, accept=False, annotator="cy"),
        one("picture", messages(*PICTURE, agent("A dot.")), rating=5, scale=[1, 5]),
        one("talk", messages(*TALK, agent("Right.", name="Bo")), accept=True),
        one("empty", messages(ASK, agent("")), accept=True),
        one("unicode", messages(user(UNICODE), agent(UNICODE)), accept=True),
        one("rude", messages(ASK, agent("Go away.")), accept=False),
        one("middle", messages(ASK, agent("Maybe.")), rating=3, scale=[1, 5]),
        {"trajectory": numbers[0], "annotator": "ann", "accept": True},
    )
    say(
        project,
        "steps",
        one("plain", PLAIN, labels={"0": "good", "1": "bad", "2": "neutral"}, corrections={"1": "2"}),
        one("calls", CALLS, first_error=2),
        {"trajectory": numbers[0], "annotator": "ann", "first_error": None},
    )
    say(project, "outcomes", {"task": {"id": "won"}, "trajectory": messages(ASK, agent("Won.")), "success": True},
        {"task": {"id": "lost"}, "trajectory": messages(ASK, agent("Lost.")), "success": False})  # fmt: skip
    say(project, "rubric", one("plain", PLAIN, criterion="polite", value=4, scale=[1, 5]))
    say(project, "rankings", {"task": {"id": "ranked"}, "items": [messages(ASK, agent(t)) for t in "abc"],
                              "ranks": [1, 2, 2], "annotator": "ann"})  # fmt: skip
    say(
        project,
        "comments",
        one("plain", PLAIN, text=UNICODE, anchor={"steps": [1, 1], "quote": "one"}, sign=-1),
        one("rude", messages(ASK, agent("Go away.")), text="Rude.", anchor=None),
    )
