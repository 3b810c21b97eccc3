"""The events of Claude Code as chat messages: which run an event is of, and which lines are one message."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.core.storage.disk_map import DiskMap
from apps.trajectories.formats.coding_agents import droid

Event = dict[str, Any]
Message = dict[str, Any]
SPOKEN = ("user", "assistant")
SHARED = (
    *("type", "message", "sessionId", "session_id", "cwd", "version", "gitBranch", "userType", "isSidechain"),
    *("agentId", "slug", "entrypoint", "parent_tool_use_id"),
)
_SYNTHETIC = "<synthetic>"  # the model of a message that the client wrote
_TOOL_CALL = "ToolCall"  # ends the key of a call in Cursor's `tool_call` events


def message_of(event: Any) -> Message | None:
    """The message of an event of a person or the agent; None of other events."""
    if not isinstance(event, dict) or event.get("type") not in SPOKEN:
        return None
    message = event.get("message")
    if isinstance(message, str | list):
        message = {"content": message}
    return message if isinstance(message, dict) else None


def sdk_events(document: Any) -> list[Any]:
    """Of a recording of what the Agent SDK sent and received; empty for anything else."""
    held = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(held, list) or not held:
        return []
    if not all(isinstance(each, dict) and {"direction", "message"} <= each.keys() for each in held):
        return []
    return [each["message"] for each in held if isinstance(each["message"], dict)]


def is_answer(event: Any) -> bool:
    """Whether an event is something that the model said or did."""
    if isinstance(event, dict) and isinstance(event.get("loglines"), list):
        return any(map(is_answer, event["loglines"]))
    if sent := sdk_events(event):
        return any(map(is_answer, sent))
    if isinstance(event, dict) and event.get("type") in ("tool_call", "result"):
        return True
    if droid.is_answer(event):
        return True
    message = message_of(event)
    return message is not None and event["type"] == "assistant" and message.get("model") != _SYNTHETIC


class RunKeys:
    """The run that each event belongs to: a session, or a sub-agent of it.

    A sub-agent is what `agentId` names, in stream-json `parent_tool_use_id`; in logs that have neither, all that
    follows from one event of a sidechain. What follows from an event is of its run, also where a resumed session has an
    id of its own.
    """

    def __init__(self) -> None:
        self._count = 0
        self._by_uuid: DiskMap[str] = DiskMap()
        self._by_agent: dict[str, str] = {}
        self._sidechains: dict[str, str] = {}  # the last of each session

    def __call__(self, event: Any) -> str | None:
        if isinstance(event.get("loglines"), list) or sdk_events(event):
            self._count += 1
            return f"document {self._count}"
        session = str(event.get("sessionId") or event.get("session_id") or "")
        above = self._by_uuid.get(str(event.get("parentUuid") or ""))
        call = event.get("parent_tool_use_id")
        if isinstance(call, str) and call:
            key: str | None = f"{session}/{call}"
        elif event.get("isSidechain") is True:
            key = self._sidechain(event, session, above)
        elif above is not None and "/" not in above:
            key = above
        else:
            key = session or None
        uuid = event.get("uuid")
        if key is not None and isinstance(uuid, str) and self._by_uuid.get(uuid) is None:
            self._by_uuid[uuid] = key
        return key

    def _sidechain(self, event: Event, session: str, above: str | None) -> str:
        agent = event.get("agentId")
        named = f"{session}/{agent}" if isinstance(agent, str) and agent else None
        if named in self._by_agent:
            return self._by_agent[named or ""]
        key = above if above is not None and "/" in above else None
        if key is None and named is None and event.get("parentUuid"):
            key = self._sidechains.get(session)  # what it follows is not in the log
        key = key or named or f"{session}/{event.get('uuid') or 'sidechain'}"
        if named is not None:
            self._by_agent[named] = key
        self._sidechains[session] = key
        return key


@dataclass(slots=True)
class SessionMessages:
    """messages: chat messages in the order of the log. others: the events that are none."""

    messages: list[Message] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)


def conversation(events: list[Any]) -> SessionMessages:
    found = SessionMessages()
    by_id: dict[str, Message] = {}
    seen: dict[str, Any] = {}
    shared = _shared(events)
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        message = _READERS.get(kind if isinstance(kind, str) else "", _spoken)(event)
        if message is None:
            found.others.append(event)
            continue
        uuid = event.get("uuid")
        if isinstance(uuid, str) and uuid in seen and seen[uuid] == event.get("message"):
            continue  # a resumed session begins with what was said before
        if isinstance(uuid, str):
            seen[uuid] = event.get("message")
        about = {key: value for key, value in event.items() if shared.get(key) != value and key not in _TAKEN}
        identity = message.get("id")
        if message["role"] == "assistant" and isinstance(identity, str) and identity in by_id:
            _join(by_id[identity], message, about)
            continue
        message = message | ({"events": [about]} if about else {})
        if isinstance(identity, str) and message["role"] == "assistant":
            by_id[identity] = message
        found.messages.append(message)
    return found


_TAKEN = ("type", "message", "tool_call")


def _shared(events: list[Any]) -> dict[str, Any]:
    """What the first event that has it states of the run."""
    found: dict[str, Any] = {}
    for event in events:
        if isinstance(event, dict):
            found |= {
                key: event[key] for key in SHARED if key not in found and event.get(key) not in (None, "")
            }
    return found


def _spoken(event: Any) -> Message | None:
    message = message_of(event)
    if message is None:
        return None
    content = message.get("content")
    role = event["type"]
    origin = event.get("origin")
    from_client = isinstance(origin, dict) and str(origin.get("kind", "human")) not in ("human", "peer")
    if role == "user" and not has_result(content):
        is_written = event.get("isMeta") or event.get("isCompactSummary") or event.get("isSynthetic")
        role = "system" if is_written or from_client else role
    if message.get("model") == _SYNTHETIC:
        role = "system"
    rest = {key: value for key, value in message.items() if key not in ("role", "type", "content")}
    return {"role": role, "content": _blocks(content)} | rest


def has_result(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _blocks(content: Any) -> Any:
    """Content as blocks or text; what is neither is left out here, and named as unread."""
    if isinstance(content, dict):
        return [content]
    return content if isinstance(content, str | list) else None


def _attached(event: Event) -> Message | None:
    """What a person wrote while the agent was at work; None of other attachments."""
    attachment = event.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return None
    prompt = attachment.get("prompt")
    if not isinstance(prompt, str | list) or not prompt:
        return None
    by_client = attachment.get("commandMode") not in (None, "prompt") or event.get("isMeta")
    return {"role": "system" if by_client else "user", "content": prompt}


def _boundary(event: Event) -> Message | None:
    """Where the conversation was compacted; None of other events of the client."""
    content = event.get("content")
    if event.get("subtype") not in ("compact_boundary", "microcompact_boundary"):
        return None
    return {"role": "system", "content": content if isinstance(content, str) else "SessionMessages compacted"}


def _cursor_call(event: Event) -> Message | None:
    """A `tool_call` of Cursor's command line: {"readToolCall": {"args", "result"}}. Its beginning is a call, its end a
    result."""
    holder = event.get("tool_call")
    kind = next((key for key in holder if key.endswith(_TOOL_CALL)), "") if isinstance(holder, dict) else ""
    body = holder.get(kind) if isinstance(holder, dict) and kind else None
    if not isinstance(body, dict):
        return None
    identity = event.get("call_id")
    if event.get("subtype") == "completed" and "result" in body:
        return {"role": "tool", "tool_call_id": identity, "content": body["result"]}
    call = {
        "type": "tool_use",
        "id": identity,
        "name": kind.removesuffix(_TOOL_CALL),
        "input": body.get("args"),
    }
    return {"role": "assistant", "content": [call]}


_READERS: dict[Any, Callable[[Any], Message | None]] = {
    "attachment": _attached,
    "system": _boundary,
    "tool_call": _cursor_call,
}


def _join(before: Message, after: Message, about: Event) -> None:
    """A further line of a message: its blocks come after those before; its usage counts instead."""
    blocks = [*_as_blocks(before["content"])]
    blocks += [block for block in _as_blocks(after["content"]) if block not in blocks]
    before |= {key: value for key, value in after.items() if value is not None} | {"content": blocks}
    if about:
        before["events"] = [*before.get("events", ()), about]


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []
