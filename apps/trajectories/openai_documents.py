"""Trajectories as documents of OpenAI chat messages, which OpenAI's own types take and the format `openai` reads back.

OpenAI requires an id of every call, and of every tool message the id of its call. Where a trajectory has none, one is
written, and `added` of the document says so, so that a reader can leave it out again:

    {"call_ids": [ids written], "results": {"<message>": the id it had, or null},
     "observations": [messages that are observations without a call], "environment": [[messages of one step], ...],
     "contents": {"<message>": the content it had, where OpenAI's types take no such content of its role}}
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from workers import schema
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Step, Trajectory
from workers.schema.decode import convert
from workers.schema.records import Record
from workers.schema.storage import to_builtins
from workers.schema.tool_results import call_places, with_places

FIELD = "added"
_MEDIA = {"image_url": ("url",), "input_audio": ("data", "format"), "file": ()}  # text that a part of it has


class _Added(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    call_ids: list[str] = []
    results: dict[int, str | None] = {}
    observations: list[int] = []
    environment: list[list[int]] = []
    contents: dict[int, Any] = {}


def to_document(trajectory: Trajectory) -> dict[str, Any]:
    """What the format `openai` reads: the same trajectory again."""
    task = {"id": trajectory.task.id, "instruction": trajectory.task.instruction}
    has_agent = trajectory.agent or trajectory.agent_version
    messages, added = _messages(trajectory)
    optional = {
        "agent": {"name": trajectory.agent, "version": trajectory.agent_version} if has_agent else None,
        "reward": trajectory.reward,
        "success": trajectory.success,
        "metadata": trajectory.metadata or None,
        FIELD: to_builtins(added) or None,
    }
    return (
        ({"id": trajectory.id} if trajectory.id else {})
        | {
            "task": task
            | ({"reference": trajectory.task.reference} if trajectory.task.reference is not None else {})
            | ({"metadata": trajectory.task.metadata} if trajectory.task.metadata else {}),
            "messages": messages,
        }
        | {name: value for name, value in optional.items() if value is not None}
    )


def _messages(trajectory: Trajectory) -> tuple[list[dict[str, Any]], _Added]:
    messages: list[dict[str, Any]] = []
    added = _Added(call_ids=[], results={}, observations=[], environment=[], contents={})
    for step in trajectory.steps:
        of_step = schema.to_messages(replace(trajectory, steps=(step,)))
        start = len(messages)
        messages += of_step
        if step.source == "environment":
            added.environment.append(list(range(start, len(messages))))
            continue
        calls = of_step[0].get("tool_calls") or []
        taken = {call.get("id") for call in calls}
        for number, call in enumerate(calls):
            if not isinstance(call.get("id"), str):
                call["id"] = _free_id(f"call_{start}_{number}", taken)
                added.call_ids.append(call["id"])
        places = call_places(step)
        for place, message in enumerate(of_step[1:]):
            if message["role"] != "tool":
                continue
            if not calls:
                message["role"] = "user"
                added.observations.append(start + 1 + place)
                message.pop("tool_call_id", None)
            elif message.get("tool_call_id") not in taken or message.get("tool_call_id") is None:
                added.results[start + 1 + place] = message.get("tool_call_id")
                message["tool_call_id"] = calls[places[place] or 0]["id"]
    for number, message in enumerate(messages):
        content = _fitting_content(message["role"], message["content"])
        if content != message["content"]:
            added.contents[number], message["content"] = message["content"], content
    return messages, added


def _fitting_content(role: str, content: Any) -> Any:
    """The content as OpenAI's types take it: of tools and of the system, text; media of users in OpenAI's own parts."""
    if content is None:
        return None if role in ("assistant", "function") else ""
    return [_fitting_part(role, part) for part in content] if isinstance(content, list) else content


def _fitting_part(role: str, part: dict[str, Any]) -> dict[str, Any]:
    kind = str(part.get("type"))
    if kind == "refusal" and role == "assistant" and isinstance(part.get("refusal"), str):
        return part
    if isinstance(part.get("text"), str):
        return part | {"type": "text"}
    if role == "user":
        image = part.get("image_url")
        if isinstance(image, str):
            return {"type": "image_url", "image_url": {"url": image}}
        body = part.get(kind)
        if isinstance(body, dict) and all(isinstance(body.get(key), str) for key in _MEDIA.get(kind, ("",))):
            return part
    return {"type": "text", "text": f"[{kind}]"}


def with_contents(messages: Any, added: Any, *, pointer: str) -> Any:
    """The messages of a document with the contents that they had. Raises InvalidRecord."""
    contents = convert(added, _Added, pointer=pointer).contents
    if not contents or not isinstance(messages, list):
        return messages
    return [
        message | {"content": contents[number]}
        if number in contents and isinstance(message, dict)
        else message
        for number, message in enumerate(messages)
    ]


def _free_id(name: str, taken: set[Any]) -> str:
    while name in taken:
        name += "_"
    return name


def without_added(steps: Sequence[Step], added: Any, *, pointer: str) -> tuple[Step, ...]:
    """The steps of a document's messages, without what `to_document` added. Raises InvalidRecord."""
    given = convert(added, _Added, pointer=pointer)
    environment = {first: rest for first, *rest in given.environment if rest is not None}
    followers = {number for rest in environment.values() for number in rest}
    out: list[Step] = []
    message = 0
    for step in steps:
        message = step.extra.get("source_index", message)
        result = ObservationResult(content=step.message)
        if message in given.observations:
            if not out:
                raise InvalidRecord(
                    "no step comes before this observation.", pointer=f"{pointer}/observations"
                )
            out[-1] = replace(out[-1], observation=(*out[-1].observation, result))
        elif message in followers and out:
            out[-1] = replace(out[-1], observation=(*out[-1].observation, result))
        elif message in environment:
            out.append(
                Step(source="environment", speaker=step.speaker, observation=(result,), extra=step.extra)
            )
        else:
            out.append(_without_ids(step, message, given))
    return tuple(out)


def _without_ids(step: Step, message: int, given: _Added) -> Step:
    """The results of a step's calls are the messages that follow its own."""
    calls = tuple(replace(call, id=None) if call.id in given.call_ids else call for call in step.tool_calls)
    observation = tuple(
        replace(result, call_id=given.results[message + 1 + place])
        if message + 1 + place in given.results
        else result
        for place, result in enumerate(step.observation)
    )
    if calls == step.tool_calls and observation == step.observation:
        return step
    places = call_places(step)
    return with_places(replace(step, tool_calls=calls, observation=observation), places)
