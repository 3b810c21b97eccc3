"""OpenHands' events before its SDK, as chat messages: {"action", "args"} and the {"observation", "content"} of each.

What a model said stands in `tool_call_metadata.model_response`, where it has tool calls; the actions of one response
are one message. Events of the client (state, recall, null) are no messages.
"""

import json
from collections.abc import Mapping
from typing import Any

Message = dict[str, Any]
SOURCES = ("user", "agent", "environment")
_STATE = (
    "recall",
    "change_agent_state",
    "null",
    "pause",
    "resume",
    "start",
    "agent_state_changed",
    "condensation",
)
_STATE_SEEN = ("recall", "agent_state_changed", "null", "server_ready", "status")
_TEXT = ("thought", "wait_for_response", "images_urls", "image_urls", "content")
_OF_EVENT = (
    "id",
    "timestamp",
    "source",
    "message",
    "action",
    "args",
    "cause",
    "timeout",
    "tool_call_metadata",
)
_OF_EVENT_SEEN = (*_OF_EVENT, "observation", "content", "extras")
_OF_ACTION = (
    *(
        "confirmation_state",
        "is_confirmed",
        "security_risk",
        "action_risk",
        "blocking",
        "keep_prompt",
        "hidden",
    ),
    *("translated_ipython_code", "impl_source", "kernel_init_code", "include_extra"),
)


def is_event(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    if isinstance(event.get("action"), str):
        return isinstance(event.get("args"), dict) and (event.get("source") in SOURCES or "message" in event)
    return isinstance(event.get("observation"), str) and (
        isinstance(event.get("extras"), dict) or (event.get("source") in SOURCES and "content" in event)
    )


class EventMessages:
    """Messages of events in their order; `others` are the events that are none."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.others: list[Any] = []
        self.places: list[int] = []
        self._calls: dict[str, str] = {}  # of each action
        self._responses: dict[str, Message] = {}
        self._spoken = False

    def add(self, event: Any, index: int) -> None:
        message = None
        if isinstance(event, dict) and isinstance(event.get("action"), str):
            message = self._action(event, index)
        elif isinstance(event, dict) and isinstance(event.get("observation"), str):
            message = self._observation(event)
        if message is None:
            self.others.append(event)
        elif message:
            self.messages.append(message)
            self.places.append(index)

    def _action(self, event: Message, index: int) -> Message | None:
        """None of an event of the client; empty where it joined a message before."""
        kind = event["action"]
        given = event.get("args")
        args = (
            given if isinstance(given, dict) else {key: event[key] for key in event if key not in _OF_EVENT}
        )
        if kind in _STATE:
            return None
        about = {
            key: event[key]
            for key in ("id", "timestamp", "source", "timeout", "message")
            if event.get(key) not in (None, "")
        }
        about |= {"action": kind} if kind in ("system", "message") else {}
        about |= _rest(event, (*_OF_EVENT, "llm_metrics")) if args is given else {}
        if kind == "system":
            return {"role": "system", "content": _text(args), "event": about | _rest(args, ("content",))}
        role = "user" if event.get("source", "agent" if self._spoken else "user") == "user" else "assistant"
        self._spoken = self._spoken or kind == "message"
        response = _response(event)
        if kind == "message":
            rest = about | _rest(args, ("content", "image_urls", "images_urls"))
            message = {"role": role, "content": _with_images(_text(args), args), "event": rest}
            return message | (response if role == "assistant" else {})
        call = self._call(event, args, index)
        identity = response.get("response_id")
        if isinstance(identity, str) and identity in self._responses:
            before = self._responses[identity]
            before["tool_calls"].append(call)
            before["events"].append(about)
            return {}
        role = "assistant" if "source" not in event else role
        text = response.pop("content", None) or args.get("thought")
        message = {
            "role": role,
            "content": _string(text),
            "tool_calls": [call],
            "events": [about],
            **response,
        }
        if isinstance(identity, str):
            self._responses[identity] = message
        return message

    def _call(self, event: Message, args: Message, index: int) -> Message:
        made = event.get("tool_call_metadata")
        made = made if isinstance(made, dict) else {}
        identity = made.get("tool_call_id")
        identity = identity if isinstance(identity, str) and identity else f"event-{event.get('id', index)}"
        self._calls[str(event.get("id"))] = identity
        name = made.get("function_name")
        written = _written_call(made, identity)
        arguments: Any = _rest(args, (*_OF_ACTION, "thought")) or {}
        if event["action"] == "think":
            arguments = {"thought": args.get("thought")}
        function = {
            "name": name if isinstance(name, str) else event["action"],
            "arguments": written or arguments,
        }
        kept = _rest(args, ("thought",)) if written else {key: args[key] for key in _OF_ACTION if key in args}
        call = {"id": identity, "type": "function", "function": function, "action": event["action"]}
        return call | ({"args": kept} if kept else {})

    def _observation(self, event: Message) -> Message | None:
        kind = event["observation"]
        if kind in _STATE_SEEN:
            return None
        content = event.get("content")
        extras = event.get("extras")
        extras = extras if isinstance(extras, dict) else {}
        about = {key: value for key, value in event.items() if key not in _OF_EVENT_SEEN}
        about |= {
            key: event[key]
            for key in ("id", "timestamp", "source", "cause", "message")
            if event.get(key) not in (None, "")
        }
        shown = ("screenshot", "image_urls", "set_of_marks")
        rest = {
            key: value
            for key, value in extras.items()
            if key not in shown or not isinstance(value, str | list)
        }
        made = event.get("tool_call_metadata")
        identity = made.get("tool_call_id") if isinstance(made, dict) else None
        identity = self._calls.get(str(event.get("cause"))) or identity
        seen = _with_images(content if isinstance(content, str) else json.dumps(content), extras)
        message = {"role": "tool", "tool_call_id": identity, "content": seen, "observation": kind}
        return message | {"event": about} | ({"extras": rest} if rest else {})


def _text(args: Message) -> str:
    return _string(args.get("content", args.get("thought")))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _rest(args: Mapping[str, Any], known: tuple[str, ...]) -> Message:
    return {key: value for key, value in args.items() if key not in known and value not in (None, "")}


def _with_images(text: str, holder: Mapping[str, Any]) -> Any:
    """Text, with the pictures that were shown next to it."""
    sources: list[Any] = []
    for key in ("image_urls", "images_urls"):
        value = holder.get(key)
        sources += value if isinstance(value, list) else []
    marked = next((holder[key] for key in ("set_of_marks", "screenshot") if holder.get(key)), None)
    sources += [marked] if isinstance(marked, str) else []
    sources = [source for source in sources if isinstance(source, str) and source]
    if not sources:
        return text
    pictures = [{"type": "image_url", "image_url": {"url": source}} for source in sources]
    return [*([{"type": "text", "text": text}] if text else []), *pictures]


def _response(event: Message) -> Message:
    """What the model's response says besides its calls: text, reasoning, model, tokens and its id."""
    made = event.get("tool_call_metadata")
    response: Any = made.get("model_response") if isinstance(made, dict) else None
    if not isinstance(response, dict):
        return {}
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    message = message if isinstance(message, dict) else {}
    found = {key: response[key] for key in ("model", "usage") if response.get(key)}
    if isinstance(response.get("id"), str):
        found["response_id"] = response["id"]
    rest = {key: value for key, value in response.items() if key not in ("id", "model", "usage", "choices")}
    found["response"] = rest | {key: value for key, value in first.items() if key not in ("message", "index")}
    for key in ("content", "reasoning_content", "thinking_blocks"):
        if message.get(key):
            found[key] = message[key]
    content = found.get("content")
    return found if isinstance(content, str | None) else found | {"content": _block_text(content)}


def _block_text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))


def _written_call(made: Message, identity: str) -> Any:
    """The arguments as the model wrote them; None where its response is not in the log."""
    response = made.get("model_response")
    choices: Any = response.get("choices") if isinstance(response, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        message: Any = choice.get("message") if isinstance(choice, dict) else None
        calls: Any = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            function: Any = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and call.get("id") == identity:
                arguments = function.get("arguments")
                return arguments if isinstance(arguments, str | dict) else None
    return None
