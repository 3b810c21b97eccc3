"""Cursor: the export of a chat as Markdown, and the transcripts of its agents (~/.cursor/projects/*/agent-transcripts).

A transcript has JSON lines {"role", "message": {"content": [blocks of Anthropic]}}, without results of tools, and
{"type": "turn_ended", "status"}. An export has a title, `_Exported on ... from Cursor (version)_`, and turns that begin
with `**User**` or `**Cursor**`, each between two lines `---`.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.session import prompt_task
from apps.trajectories.formats.coding_agents.transcript import (
    Message,
    is_transcript,
    read_transcript,
    stripped,
)
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import Placed, storable
from apps.trajectories.formats.placed import steps_of as steps_of_messages
from apps.trajectories.formats.text_kind import TextKind
from workers.schema import Step, Task, Trajectory
from workers.schema.messages import build_trajectory

SIGN = "messages as `message` next to their `role`, of Cursor, or a file with `_Exported on ... from Cursor`"
READ = ("/cursor/title", "/messages/*/role", "/*/role", "/*/message/content/*/type")
_EXPORTED, _FROM, _RULE = "_Exported on ", " from Cursor", "---"
_ROLES = {"**User**": "user", "**Cursor**": "assistant"}
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
Gathered = event_log(
    answers=lambda event: isinstance(event, dict) and event.get("role") == "assistant",
    whole=lambda document: is_transcript(document, "cursor"),
)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_turn, document[:2]))
    return is_transcript(document, "cursor") or _is_turn(document)


def _is_turn(event: Any) -> bool:
    return (
        isinstance(event, dict)
        and event.get("role") in ("user", "assistant")
        and isinstance(event.get("message"), dict)
        and "content" in event["message"]
        and "type" not in event
        and "content" not in event
    )


@storable
def read(document: Any) -> Trajectory:
    if not isinstance(document, list):
        return read_transcript(document, "cursor", "Cursor")
    return _of_events(document)


def _of_events(events: list[Any]) -> Trajectory:
    messages: list[Placed] = []
    others: list[Any] = []
    for index, event in enumerate(events):
        if _is_turn(event):
            rest = {key: value for key, value in event.items() if key not in ("role", "message")}
            messages.append((f"/{index}/message", rest | event["message"] | {"role": event["role"]}))
        else:
            others.append(event)
    steps = steps_of_messages(messages)
    return build_trajectory(
        steps, _task(steps), agent="Cursor", metadata={"events": others} if others else {}
    )


def _task(steps: tuple[Step, ...]) -> Task:
    """Of what the person typed: Cursor puts the time and the open files around it."""
    prompts = [step for step in steps if step.source == "user"][:1]
    for step in prompts:
        _, found, rest = step.text.partition(_QUERY)
        if found:
            text = rest.partition(_QUERY_END)[0].strip()
            typed = replace(step, message=tuple(replace(part, text=text) for part in step.message[:1]))
            return prompt_task([typed])
    return prompt_task(steps)


def _export(lines: list[str]) -> Any:
    title = next((line for line in lines if line.startswith("# ")), "").removeprefix("# ").strip()
    exported = next((line for line in lines if line.startswith(_EXPORTED)), "")
    when, _, version = exported.strip().strip("_").removeprefix("Exported on ").rpartition(_FROM)
    messages: list[Message] = []
    turn: list[str] = []
    role = ""
    for line in lines:
        if line.strip() in _ROLES and (not turn or _ends_with_rule(turn)):
            _end_turn(messages, role, turn)
            turn, role = [], _ROLES[line.strip()]
        else:
            turn.append(line)
    _end_turn(messages, role, turn)
    if not any(message["role"] == "assistant" for message in messages):
        return None
    about = {"title": title, "exported": when.strip(), "version": version.strip().strip("()")}
    return {"cursor": {key: value for key, value in about.items() if value}, "messages": messages}


def _ends_with_rule(turn: list[str]) -> bool:
    """Or with the header: exports of other programs in this form have no rule before the first turn."""
    last = stripped(turn).rpartition("\n")[2]
    return last == _RULE or last.startswith(_EXPORTED) or not last


def _end_turn(messages: list[Message], role: str, turn: list[str]) -> None:
    text = stripped(turn)
    text = text.removesuffix(_RULE).rstrip() if text.endswith(f"\n{_RULE}") else text
    if role and text:
        messages.append({"role": role, "content": text})


def _begins(head: str) -> bool:
    lines = [line for line in head[:4000].splitlines() if line.strip()][:2]
    return (
        len(lines) == 2 and lines[0].startswith("# ") and lines[1].startswith(_EXPORTED) and _FROM in lines[1]
    )


EXPORT = TextKind("a chat exported by Cursor", _begins, lambda line: False, _export)
