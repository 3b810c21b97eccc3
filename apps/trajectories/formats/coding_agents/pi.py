"""Sessions of pi, on which OpenClaw runs (~/.pi/agent/sessions/*/*.jsonl, ~/.openclaw/agents/*/sessions/*.jsonl).

As packages/coding-agent/docs/session.md of pi-mono has them: a header {"type": "session", "id", "cwd"}, then entries
{"type": "message" | "compaction" | "branch_summary" | "custom_message" | ..., "id", "parentId"}, a tree by `parentId`
since version 2. What the last entry follows is the run; another branch with an answer is a trajectory too.
Factory's Droid keeps its sessions likewise (~/.factory/sessions), after a header of the type `session_start`.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.coding_agents.session import first_text, prompt_task
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import MessageReader, Placed, object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "entries with a `type` message and a `message`, after a header with a `cwd` and the `type` session"
Message = dict[str, Any]
_KINDS = ("message", "compaction", "branch_summary", "custom_message")  # entries that a model is told
_HEADERS = ("session", "session_start")
_OF_ENTRY = ("id", "parentId", "timestamp")
_MOST_BRANCHES = 50
_BRANCH = "branch"  # key of the first entry of a branch's document: the id of its last entry
_COUNTS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")  # the metrics of a step
READ = (
    *("/*/type", "/*/branch", "/*/message/role", "/*/message/toolName", "/*/message/content/*/type"),
    *(f"/*/message/usage/{key}" for key in (*_COUNTS, *(f"cost/{key}" for key in (*_COUNTS, "total")))),
)
REPEATED = ("/*/id", "/*/parentId", "/*/message/model", "/*/message/provider", "/*/message/toolCallId")
Gathered = event_log(
    key=lambda event: text_at(event, "id") or None if event.get("type") in _HEADERS else None,
    answers=lambda event: _role(event) == "assistant",
)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_entry, document[:2]))
    return _is_entry(document)


def _is_entry(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("type") == "session_start":
        return "cwd" in value and "id" in value
    if value.get("type") == "session":
        return "cwd" in value and "timestamp" in value and "content" not in value
    return value.get("type") == "message" and "role" in object_at(value, "message") and "timestamp" in value


def _role(event: Any) -> str:
    return text_at(object_at(event, "message"), "role") if isinstance(event, dict) else ""


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document for each branch that has an answer of its own. Raises InvalidRecord."""
    events = require_list(document)
    parents = _parents(events)
    leaves = [place for place, event in enumerate(events) if _is_told(event)]
    above = {parent for parent in parents if parent is not None}
    ends = [place for place in leaves if place not in above]
    if len(ends) < 2 or len(ends) > _MOST_BRANCHES or not any(parent is not None for parent in parents):
        yield "", document
        return
    told = {place for place, event in enumerate(events) if _is_told(event)}
    main = _path(parents, ends[-1])
    yield "", [event for place, event in enumerate(events) if place in main or place not in told]
    for end in ends[:-1]:
        own = _path(parents, end)
        if any(_role(events[place]) == "assistant" for place in own - main):
            branch = {_BRANCH: text_at(events[end], "id")}
            head = [event for event in events[:1] if object_at({"": event}, "").get("type") in _HEADERS]
            yield "", [branch, *head, *(events[place] for place in sorted(own) if events[place] not in head)]


def _is_told(event: Any) -> bool:
    return isinstance(event, dict) and event.get("type") in _KINDS


def _parents(events: list[Any]) -> list[int | None]:
    """The place of the entry that each follows; an entry that is told to no model stands between."""
    places: dict[str, int] = {}
    found: list[int | None] = []
    for place, event in enumerate(events):
        found.append(places.get(text_at(event, "parentId")) if isinstance(event, dict) else None)
        if identity := text_at(event, "id"):
            places[identity] = place
    return [_nearest(events, found, place) for place in found]


def _nearest(events: list[Any], parents: list[int | None], place: int | None) -> int | None:
    while place is not None and not _is_told(events[place]):
        place = parents[place]
    return place


def _path(parents: list[int | None], place: int | None) -> set[int]:
    found: set[int] = set()
    while place is not None:
        found.add(place)
        place = parents[place]
    return found


@storable
def read(document: Any) -> Trajectory:
    events = objects(require_list(document))
    branch = text_at(events[0], _BRANCH) if events else ""
    events = events[1:] if branch else events
    messages: list[Placed] = []
    others: list[Message] = []
    for index, event in enumerate(events):
        message = _message(event)
        if message is None:
            others.append(event)
            continue
        about = {key: event[key] for key in _OF_ENTRY if key in event}
        messages.append((f"/{index}/message", message | ({"entry": about} if about else {})))
    if not messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps, facts = _READER.read(messages)
    header = next((event for event in others if event.get("type") in _HEADERS), {})
    session = text_at(header, "id")
    metadata = {
        "session": session,
        "cwd": text_at(header, "cwd"),
        "title": first_text(reversed(others), "name") or text_at(header, "title", "sessionTitle"),
        "branch": branch,
        "parent": session if branch else "",
        "events": others,
    }
    return build_trajectory(
        steps,
        prompt_task(steps),
        id="/".join(filter(None, (session, branch))) or None,
        agent="Droid" if header.get("type") == "session_start" else "pi",
        agent_version=text_at(header, "version"),
        metadata=facts | {key: value for key, value in metadata.items() if value},
    )


def _message(event: Message) -> Message | None:
    """What an entry tells the model; None of other entries."""
    kind, message = event.get("type"), object_at(event, "message")
    if kind in ("compaction", "branch_summary"):
        rest = {key: value for key, value in event.items() if key not in (*_OF_ENTRY, "type", "summary")}
        return {"role": "system", "content": event.get("summary"), "kind": kind} | rest
    if kind == "custom_message":
        rest = {key: value for key, value in event.items() if key not in (*_OF_ENTRY, "type", "content")}
        return {"role": "system", "content": event.get("content"), "kind": kind} | rest
    if kind != "message" or not message:
        return None
    role = message.get("role")
    if role == "bashExecution":  # what a person ran; pi tells the model so
        text = f"Ran `{message.get('command')}`\n```\n{message.get('output')}\n```"
        rest = {key: value for key, value in message.items() if key not in ("role", "command", "output")}
        return {"role": "user", "content": text, "kind": role} | rest
    if role in ("custom", "hookMessage", "branchSummary", "compactionSummary"):
        content = message.get("content", message.get("summary"))
        rest = {key: value for key, value in message.items() if key not in ("role", "content", "summary")}
        return {"role": "system", "content": content, "kind": role} | rest
    named = {"name": message["toolName"]} if isinstance(message.get("toolName"), str) else {}
    return {key: value for key, value in message.items() if key != "toolName"} | named


def _usage(message: Message) -> Any:
    given = message.get("usage")
    if not isinstance(given, dict):
        return None
    names = {"input": "input_tokens", "output": "output_tokens", "cacheRead": "cache_read_tokens"}
    cost = object_at(given, "cost")
    found = {names.get(key, key): value for key, value in given.items() if key != "cost"}
    return found | {"cost" if key == "total" else f"cost_{key}": value for key, value in cost.items()}


_READER = MessageReader(usage=_usage)
