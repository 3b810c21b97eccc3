"""Runs of tau-bench as few-shot examples (HAL's `*few_shot.jsonl`): {"messages_display": "user: ...\\nassistant: ..."}.

The text has the words of each message alone: of calls of tools only that there was one, as `assistant: None`.
"""

from typing import Any

from apps.trajectories.formats.placed import placed, steps_of, storable, text_at
from apps.trajectories.formats.turns import observed_results
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory
from workers.schema.patterns import TextPattern

SIGN = "an object with a text `messages_display`"
READ = ("/messages_display",)
_SPEAKER = TextPattern(r"(?m)^(system|user|assistant|tool): ?")
_NOTHING = "None"


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("messages_display"), str)


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    text = text_at(document, "messages_display")
    marks = list(_SPEAKER.finditer(text))
    if not marks:
        raise InvalidRecord("no line begins with who speaks, such as `user: `.", pointer="/messages_display")
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    messages = [
        _message(mark[1], text[mark.end() : end].removesuffix("\n"))
        for mark, end in zip(marks, ends, strict=True)
    ]
    if begun := text[: marks[0].start()].strip():
        messages.insert(0, {"role": "system", "content": begun})
    rest = {key: value for key, value in document.items() if key != "messages_display"}
    steps = observed_results(steps_of(placed(messages, "/messages_display")))
    first = next((step.text for step in steps if step.source == "user"), "")
    return build_trajectory(steps, Task(id="", instruction=first), metadata=rest)


def _message(role: str, text: str) -> dict[str, Any]:
    is_call = role == "assistant" and text.strip() == _NOTHING
    return {"role": role, "content": None if is_call else text}
