"""Events of OpenHands' SDK as chat messages: {"kind": "ActionEvent" | "ObservationEvent" | "MessageEvent" | ...}."""

from typing import Any

from workers.schema.message_parts import result_content

Message = dict[str, Any]
_KINDS = (
    *("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent"),
    *("UserRejectObservation", "Condensation", "CondensationRequest", "CondensationSummaryEvent"),
    *("ConversationStateUpdateEvent", "ConversationErrorEvent", "PauseEvent", "TokenEvent"),
    *(
        "LLMCompletionLogEvent",
        "InterruptEvent",
        "ACPToolCallEvent",
        "StreamingDeltaEvent",
        "HookExecutionEvent",
    ),
)
_OF_ACTION = (
    *("thought", "reasoning_content", "thinking_blocks", "action", "tool_name", "tool_call_id", "tool_call"),
    *("kind", "llm_response_id"),
)


def is_event(event: Any) -> bool:
    return isinstance(event, dict) and event.get("kind") in _KINDS


class SdkMessages:
    """Messages of events in their order; `others` are the events that are none."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.others: list[Any] = []
        self.places: list[int] = []
        self._responses: dict[str, Message] = {}

    def add(self, event: Any, index: int) -> None:
        kind = event.get("kind") if isinstance(event, dict) else None
        reader = self._READERS.get(kind if isinstance(kind, str) else "")
        message = reader(self, event) if reader is not None else None
        if message is None:
            self.others.append(event)
        elif message:
            self.messages.append(message)
            self.places.append(index)

    def _system(self, event: Message) -> Message | None:
        return _spoken("system", event.get("system_prompt"), event, ("system_prompt",))

    def _message(self, event: Message) -> Message | None:
        message = event.get("llm_message")
        if not isinstance(message, dict):
            return None
        role = {"agent": "assistant", "user": "user"}.get(str(event.get("source")), message.get("role"))
        content = message.get("content")
        added = event.get("extended_content")
        if isinstance(content, list) and isinstance(added, list):
            content = [*content, *added]
        rest = {key: value for key, value in message.items() if key not in ("role", "content") and value}
        about = _rest(event, ("llm_message", "extended_content"))
        return rest | {"role": role, "content": _content(content), "event": about}

    def _action(self, event: Message) -> Message:
        call = _call(event)
        identity = event.get("llm_response_id")
        before = self._responses.get(identity) if isinstance(identity, str) else None
        if before is not None and not event.get("thought"):
            before["tool_calls"].append(call)
            before["events"].append(_rest(event, _OF_ACTION))
            return {}
        message = {"role": "assistant", "content": _content(event.get("thought")), "tool_calls": [call]}
        message |= {key: event[key] for key in ("reasoning_content", "thinking_blocks") if event.get(key)}
        message |= {"events": [_rest(event, _OF_ACTION)]}
        if isinstance(identity, str):
            message["response_id"] = identity
            self._responses[identity] = message
        return message

    def _observation(self, event: Message) -> Message:
        seen = event.get("observation")
        content = seen.get("content") if isinstance(seen, dict) else seen
        known: tuple[str, ...] = ("content",)
        if content is None and isinstance(seen, dict) and isinstance(seen.get("output"), str | list):
            content, known = seen["output"], ("output",)
        content = seen if content is None else content
        rest = (
            {key: value for key, value in seen.items() if key not in known} if isinstance(seen, dict) else {}
        )
        about = _rest(event, ("observation", "tool_call_id", "tool_name"))
        answer = {"role": "tool", "tool_call_id": event.get("tool_call_id"), "name": event.get("tool_name")}
        return answer | {"content": _result(content), "observation": rest, "event": about}

    def _error(self, event: Message) -> Message:
        text = event.get("error", event.get("rejection_reason"))
        about = _rest(event, ("error", "rejection_reason", "tool_call_id", "tool_name"))
        answer = {"role": "tool", "tool_call_id": event.get("tool_call_id"), "name": event.get("tool_name")}
        return answer | {"content": _result(text), "event": about}

    def _condensation(self, event: Message) -> Message | None:
        summary = event.get("summary")
        return (
            _spoken("system", summary, event, ("summary",)) if isinstance(summary, str) and summary else None
        )

    _READERS = {
        "SystemPromptEvent": _system,
        "MessageEvent": _message,
        "ActionEvent": _action,
        "ObservationEvent": _observation,
        "AgentErrorEvent": _error,
        "UserRejectObservation": _error,
        "Condensation": _condensation,
        "CondensationSummaryEvent": _condensation,
    }


def _spoken(role: str, content: Any, event: Message, known: tuple[str, ...]) -> Message:
    content = content if isinstance(content, str | list) else [content] if isinstance(content, dict) else ""
    return {"role": role, "content": _content(content), "event": _rest(event, known)}


def _call(event: Message) -> Message:
    made = event.get("tool_call")
    made = made if isinstance(made, dict) else {}
    function: Any = made.get("function") if isinstance(made.get("function"), dict) else made
    action = event.get("action")
    arguments = function.get("arguments")
    if not isinstance(arguments, str | dict):
        arguments = (
            {key: value for key, value in action.items() if key != "kind"} if isinstance(action, dict) else {}
        )
    identity = event.get("tool_call_id") or made.get("id")
    name = event.get("tool_name") or function.get("name") or "action"
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    rest = {
        key: value
        for key, value in made.items()
        if key not in ("id", "name", "arguments", "function") and value
    }
    return call | rest | ({"action": action} if isinstance(action, dict) else {})


def _rest(event: Message, known: tuple[str, ...]) -> Message:
    return {
        key: value
        for key, value in event.items()
        if key not in known and key != "kind" and value not in (None, [], {}, "")
    }


def _content(content: Any) -> Any:
    """Text, or blocks as chat messages have them: several pictures in one block are one each."""
    if not isinstance(content, list):
        return content
    found: list[Any] = []
    for block in content:
        urls = block.get("image_urls") if isinstance(block, dict) else None
        if isinstance(urls, list):
            found += [
                {"type": "image_url", "image_url": {"url": url}} for url in urls if isinstance(url, str)
            ]
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            extra = {key: value for key, value in block.items() if key not in ("type", "text") and value}
            found.append({"type": "text", "text": block["text"]} | extra)
        else:
            found.append(block)
    if len(found) == 1 and isinstance(found[0], dict) and found[0].keys() == {"type", "text"}:
        return found[0]["text"]
    return found


def _result(content: Any) -> Any:
    return result_content(_content(content))
