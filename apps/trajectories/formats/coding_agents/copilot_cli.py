"""Sessions of GitHub Copilot's command line (`events.jsonl`): {"type", "data", "id", "timestamp", "parentId"}.

`user.message` and `assistant.message` have `content`, an answer its calls as `toolRequests` and its thoughts as
`reasoningText`; `tool.execution_complete` has the result of a call. What a sub-agent does (`parentToolCallId`) is
spoken by that agent. What is no message is kept in the metadata, as `events`.
"""

from typing import Any

from apps.trajectories.formats.coding_agents.session import first_text, prompt_task
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.placed import object_at, objects, storable, text_at
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "events with `data` and a `type` such as session.start, user.message or tool.execution_complete, of Copilot"
Message = dict[str, Any]
_SPOKEN = {"user.message": "user", "system.message": "system", "assistant.message": "assistant"}
_STARTED, _DONE, _THOUGHT = "tool.execution_start", "tool.execution_complete", "assistant.reasoning"
_OTHERS = (
    "session.",
    "hook.",
    "subagent.",
    "assistant.",
    "tool.execution_",
    "system.notification",
    "user.",
    "abort",
)
_KNOWN = ("content", "toolRequests", "reasoningText", "toolCallId", "result")
READ = ("/*/type", "/*/data/toolRequests/*/arguments")
REPEATED = ("/*/data/transformedContent", "/*/data/arguments", "/*/data/toolName", "/*/data/sessionId")


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("data"), dict):
        return False
    kind = event.get("type")
    return (
        isinstance(kind, str)
        and kind.startswith((*_SPOKEN, *_OTHERS))
        and {"id", "timestamp"} <= event.keys()
    )


def _is_answer(event: Any) -> bool:
    return isinstance(event, dict) and event.get("type") in ("assistant.message", _STARTED)


Gathered = event_log(answers=_is_answer, within=same_file)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_event, document[:3]))
    return _is_event(document)


@storable
def read(document: Any) -> Trajectory:
    events = objects(clean(require_list(document))[0])
    agents = {
        text_at(data, "toolCallId"): text_at(data, "agentDisplayName", "agentName")
        for event in events
        if event.get("type") == "subagent.started" and (data := object_at(event, "data"))
    }
    reader = _CopilotMessages(agents)
    for event in events:
        reader.add(event)
    if not reader.messages:
        raise InvalidRecord("has no messages, so it holds no run; leave it out.")
    steps = from_messages(reader.messages)
    told = [object_at(event, "data") for event in events]
    model = first_text(told, "selectedModel", "model", "newModel")
    return build_trajectory(
        steps,
        prompt_task(steps),
        id=first_text(told, "sessionId") or None,
        agent="GitHub Copilot CLI",
        agent_version=first_text(told, "copilotVersion"),
        metadata=run_facts({}, model=model) | ({"events": reader.others} if reader.others else {}),
    )


class _CopilotMessages:
    """agents: names of sub-agents, by the call that started each."""

    def __init__(self, agents: dict[str, str]) -> None:
        self.messages: list[Message] = []
        self.others: list[Message] = []
        self._agents = agents
        self._calls: set[str] = set()
        self._thoughts: list[str] = []

    def add(self, event: Message) -> None:
        kind, data = str(event.get("type")), object_at(event, "data")
        about = {key: value for key, value in event.items() if key not in ("type", "data")}
        rest = {
            key: value for key, value in data.items() if key not in _KNOWN and value not in (None, "", [], {})
        }
        if rest:
            about["data"] = rest
        if kind in _SPOKEN:
            self.messages.append(self._spoken(_SPOKEN[kind], data, about))
        elif kind == _THOUGHT and isinstance(data.get("content"), str):
            self._thoughts.append(data["content"])
        elif (
            kind == _STARTED
            and text_at(data, "toolCallId")
            and text_at(data, "toolCallId") not in self._calls
        ):
            call = {
                "toolCallId": data["toolCallId"],
                "name": data.get("toolName"),
                "arguments": data.get("arguments"),
            }
            self.messages.append(self._spoken("assistant", data | {"toolRequests": [call]}, about))
        elif kind == _DONE and text_at(data, "toolCallId"):
            self.messages.append(_result(data, about))
        else:
            self.others.append(event)

    def _spoken(self, role: str, data: Message, about: Message) -> Message:
        content = data.get("content")
        message: Message = {
            "role": role,
            "content": content if isinstance(content, str | list) else None,
            "event": about,
        }
        calls = [_call(request) for request in objects(data.get("toolRequests"))]
        if calls:
            message["tool_calls"] = calls
            self._calls |= {call["id"] for call in calls if isinstance(call["id"], str)}
        if role == "assistant":
            said = data.get("reasoningText")
            thoughts = (
                [*self._thoughts, said]
                if isinstance(said, str) and said not in self._thoughts
                else self._thoughts
            )
            message |= {"reasoning_content": "\n".join(thoughts)} if any(thoughts) else {}
            self._thoughts = []
        if name := self._agents.get(text_at(data, "parentToolCallId")):
            message["name"] = name
        return message


def _call(request: Message) -> Message:
    rest = {
        key: value for key, value in request.items() if key not in ("type", "toolCallId", "name", "arguments")
    }
    function = {"name": request.get("name"), "arguments": request.get("arguments") or {}}
    return {"id": request.get("toolCallId"), "type": "function", "function": function} | rest


def _result(data: Message, about: Message) -> Message:
    result = data.get("result")
    inner = result if isinstance(result, dict) else {}
    content = inner.get("content", result if result is not None else data.get("error"))
    detail = {key: value for key, value in inner.items() if key != "content" and value not in (None, content)}
    message = {
        "role": "tool",
        "tool_call_id": data.get("toolCallId"),
        "content": result_content(content),
        "event": about,
    }
    return message | ({"result": detail} if detail else {})
