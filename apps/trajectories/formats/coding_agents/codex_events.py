"""What Codex tells of a run in events for the screen, as chat messages: where a log has no items of the model."""

import json
from typing import Any

from workers.schema.message_parts import result_content

Message = dict[str, Any]


def event_messages(events: list[Any]) -> list[tuple[int, Message]]:
    """Chat messages of `event_msg` and `msg` events, each with the index of its event."""
    found: list[tuple[int, Message]] = []
    for index, event in enumerate(events):
        body = event.get("payload", event.get("msg")) if isinstance(event, dict) else None
        if isinstance(event, dict) and isinstance(event.get("prompt"), str) and body is None:
            found.append(
                (index, {"role": "user", "content": event["prompt"]})
            )  # printed first by `codex exec`
        if isinstance(body, dict) and (message := _message(body)) is not None:
            found.append((index, message))
    return found


def _message(body: dict[str, Any]) -> Message | None:
    kind, identity = str(body.get("type")), body.get("call_id")
    if kind in ("user_message", "agent_message") and isinstance(body.get("message"), str):
        return {"role": "user" if kind == "user_message" else "assistant", "content": body["message"]}
    if kind == "agent_reasoning" and isinstance(body.get("text"), str):
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": body["text"]}]}
    if kind == "exec_command_begin":
        return _call(identity, "shell", {key: body[key] for key in ("command", "cwd") if key in body})
    if kind == "exec_command_end":
        return _result(identity, _output(body))
    if kind == "patch_apply_begin":
        return _call(identity, "apply_patch", {"changes": body.get("changes")})
    if kind == "patch_apply_end":
        return _result(identity, _output(body))
    if kind == "mcp_tool_call_begin":
        invocation = body.get("invocation")
        invocation = invocation if isinstance(invocation, dict) else body
        name = f"{invocation.get('server')}.{invocation.get('tool')}"
        return _call(identity, name, invocation.get("arguments"))
    if kind == "mcp_tool_call_end":
        return _result(identity, body.get("result"))
    if kind == "web_search_end":
        return _call(identity, "web_search", {"query": body.get("query")})
    return None


def _call(identity: Any, name: str, arguments: Any) -> Message:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return {"type": "function_call", "call_id": identity, "name": name, "arguments": text}


def _result(identity: Any, content: Any) -> Message:
    return {"type": "function_call_output", "call_id": identity, "output": result_content(content)}


def _output(body: dict[str, Any]) -> str:
    for key in ("formatted_output", "aggregated_output"):
        if isinstance(text := body.get(key), str) and text:
            return text
    return "\n".join(text for key in ("stdout", "stderr") if isinstance(text := body.get(key), str) and text)
