"""Gemini CLI: its chats (session-*.json, since 2026 JSON lines), its checkpoints, and what `--output-format` prints.

A chat is {"sessionId", "projectHash", "startTime", "messages": [{"id", "type": "user" | "gemini" | "info" | "error",
"content", "thoughts", "toolCalls": [{"id", "name", "args", "result", "status"}], "tokens", "model"}]}; as lines, first
what surrounds the messages, then these, one written again with the same id being the newer, and changes as `$set`. A
checkpoint has Gemini's contents as `history`. stream-json is {"type": "init" | "message" | "tool_use" | "tool_result" |
"result", ...}.
"""

from typing import Any

from apps.trajectories.formats.coding_agents.session import (
    first_text,
    prompt_task,
    summed_metrics,
    with_usage,
)
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "an object with `sessionId` and `projectHash`, contents as `history`, or events of Gemini CLI's stream-json"
Message = dict[str, Any]
_SPEAKERS = {
    "user": "user",
    "gemini": "assistant",
    "model": "assistant",
    "info": "system",
    "error": "system",
    "warning": "system",
}
_STREAM = ("init", "tool_use", "tool_result")
_ONLY_PROMPTS = (
    "it is Gemini CLI's logs.json, which has only what a person wrote. Send the chat, which is in "
    "~/.gemini/tmp/*/chats/session-*."
)
_OF_MESSAGE = ("type", "role", "content", "toolCalls", "thoughts", "tokens", "delta")
READ = (
    *(f"{at}/{key}" for at in ("/*/messages/*", "/*") for key in ("type", "thoughts")),
    *("/*/subtype", "/*/stats/input_tokens", "/*/stats/output_tokens"),
)
REPEATED = ("/*/sessionId", "/*/session_id", "/*/timestamp")
Gathered = event_log(
    key=lambda event: first_text([event], "sessionId", "session_id") or None, within=same_file
)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_prompt, document[:3]))
    if not isinstance(document, dict):
        return False
    history = document.get("history")
    if (
        isinstance(history, list)
        and history
        and all(isinstance(each, dict) and "parts" in each for each in history[:3])
    ):
        return True
    is_chat = "sessionId" in document and ("projectHash" in document or _has_chat(document.get("messages")))
    is_answer = {"response", "stats"} <= document.keys() and "prompt" not in document
    is_stream = document.get("type") in _STREAM and bool({"tool_id", "session_id"} & document.keys())
    return is_chat or is_stream or is_answer or _is_prompt(document)


def _has_chat(messages: Any) -> bool:
    """Whether messages have Gemini's speakers as their types."""
    return (
        isinstance(messages, list)
        and any(isinstance(each, dict) and each.get("type") in ("gemini", "model") for each in messages)
        and all(isinstance(each, dict) and each.get("type") in _SPEAKERS for each in messages)
    )


def _is_prompt(value: Any) -> bool:
    return isinstance(value, dict) and {"sessionId", "messageId", "message"} <= value.keys()


def read(document: Any) -> Trajectory:
    events, _ = clean(require_list(document))
    if any(map(_is_prompt, events)):
        raise InvalidRecord(_ONLY_PROMPTS)
    messages, around = _messages(events)
    steps = tuple(with_usage(step) for step in from_messages(messages))
    end = next((event for event in reversed(around) if event.get("type") == "result" or "stats" in event), {})
    stats: Message = end["stats"] if isinstance(end.get("stats"), dict) else {}
    model = first_text([*(step.extra.get("message") for step in steps), *around], "model")
    usage = _usage(summed_metrics(steps))
    facts = run_facts(stats, usage, {"seconds": _seconds(stats)}, model=model)
    session = first_text([*around, *events], "sessionId", "session_id")
    kept = [
        {key: value for key, value in event.items() if key not in ("messages", "history")} for event in around
    ]
    return build_trajectory(
        steps,
        prompt_task(steps),
        id=session or None,
        agent="Gemini CLI",
        success=False if end.get("status") == "error" else None,
        metadata=facts | {"session": session, "title": first_text(around, "summary"), "events": kept},
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _messages(events: list[Any]) -> tuple[list[Message], list[Message]]:
    """Chat messages, and the events and surroundings that are none."""
    found: list[Message] = []
    around: list[Message] = []
    by_id: dict[str, int] = {}
    for event in events:
        if not isinstance(event, dict):
            around.append({"value": event})
        elif isinstance(event.get("messages"), list) or isinstance(event.get("history"), list):
            found += [each for item in _listed(event.get("messages")) for each in _of_chat(item)]
            found += _listed(event.get("history"))
            around.append(event)
        elif "response" in event and "stats" in event:
            found.append({"role": "assistant", "content": event["response"]})
            around.append({key: value for key, value in event.items() if key != "response"})
        elif isinstance(rewound := event.get("$rewindTo"), str):
            del found[by_id.get(rewound, len(found)) :]
            around.append(event)
        elif "type" in event and event.get("type") in _SPEAKERS and "content" in event and "id" in event:
            _write(found, by_id, str(event["id"]), _of_chat(event))
        elif (streamed := _of_stream(event)) is not None:
            _stream(found, streamed, event)
        else:
            around.append(event)
    return found, around


def _write(found: list[Message], by_id: dict[str, int], identity: str, messages: list[Message]) -> None:
    """A message of a chat that is written line by line: again, it stands where it stood."""
    if identity in by_id and by_id[identity] < len(found):
        start = by_id[identity]
        end = min((place for place in by_id.values() if place > start), default=len(found))
        grown = len(messages) - (end - start)
        found[start:end] = messages
        by_id |= {key: place + grown for key, place in by_id.items() if place > start}
    else:
        by_id[identity] = len(found)
        found += messages


def _of_chat(item: Any) -> list[Message]:
    """A message, and the results of its calls."""
    if not isinstance(item, dict):
        return [{"role": "system", "content": str(item)}]
    kind = item.get("type", item.get("role"))
    role = _SPEAKERS.get(kind if isinstance(kind, str) else "", kind)
    content = item.get("content", item.get("parts"))
    message = {"role": role, "content": [content] if isinstance(content, dict) else content}
    message |= {key: value for key, value in item.items() if key not in _OF_MESSAGE and key != "parts"}
    thoughts = item.get("thoughts")
    texts = [_thought(each) for each in thoughts] if isinstance(thoughts, list) else []
    if any(texts):
        message |= {"reasoning_content": "\n".join(filter(None, texts)), "thoughts": thoughts}
    if isinstance(item.get("tokens"), dict):
        message["usage"] = item["tokens"]
    calls = [call for call in _listed(item.get("toolCalls")) if isinstance(call, dict)]
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return [message, *(_answer(call) for call in calls if call.get("result") is not None)]


def _thought(thought: Any) -> str:
    if not isinstance(thought, dict):
        return thought if isinstance(thought, str) else ""
    return "\n".join(str(thought[key]) for key in ("subject", "description") if thought.get(key))


def _call(call: Message) -> Message:
    rest = {key: value for key, value in call.items() if key not in ("id", "name", "args", "result")}
    function = {"name": str(call.get("name")), "arguments": call.get("args") or {}}
    return {"id": call.get("id"), "type": "function", "function": function} | (
        {"record": rest} if rest else {}
    )


def _answer(call: Message) -> Message:
    return {
        "role": "tool",
        "tool_call_id": call.get("id"),
        "name": call.get("name"),
        "content": _displayed_result(call["result"]),
    }


def _displayed_result(result: Any) -> Any:
    """What a tool gave, as the model saw it: the output of a `functionResponse`, and pictures next to it."""
    parts = result if isinstance(result, list) else [result]
    found: list[Any] = []
    for part in parts:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        body = response.get("response") if isinstance(response, dict) else None
        if body is None:
            found.append(part)
            continue
        output = (
            next((body[key] for key in ("output", "error") if key in body), body)
            if isinstance(body, dict)
            else body
        )
        found.append(
            {"type": "text", "text": output if isinstance(output, str) else result_content(output) or ""}
        )
    if len(found) == 1 and isinstance(found[0], dict) and found[0].keys() == {"type", "text"}:
        return found[0]["text"]
    return result_content(found)


def _of_stream(event: Message) -> Message | None:
    kind = event.get("type")
    if kind == "message" and isinstance(event.get("content"), str):
        return {"role": event.get("role"), "content": event["content"]}
    if kind == "tool_use" and "tool_name" in event:
        function = {"name": str(event["tool_name"]), "arguments": event.get("parameters") or {}}
        call = {"id": event.get("tool_id"), "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "tool_result" and "tool_id" in event:
        content = event.get("output", event.get("error"))
        rest = {key: event[key] for key in ("status", "error") if event.get(key)}
        return {"role": "tool", "tool_call_id": event["tool_id"], "content": result_content(content)} | rest
    return None


def _stream(found: list[Message], message: Message, event: Message) -> None:
    """A message that comes in pieces is one."""
    last = found[-1] if found else {}
    is_piece = bool(event.get("delta")) and last.get("role") == "assistant" and not last.get("tool_calls")
    if is_piece and isinstance(last.get("content"), str) and message["role"] == "assistant":
        last["content"] += message["content"]
    elif isinstance(event.get("timestamp"), str):
        found.append(message | {"timestamp": event["timestamp"]})
    else:
        found.append(message)


def _usage(total: dict[str, float | int]) -> dict[str, float | int]:
    names = {"input": "input_tokens", "output": "output_tokens"}
    return {names.get(key, key): value for key, value in total.items()}


def _seconds(stats: Message) -> float | None:
    duration = stats.get("duration_ms")
    return duration / 1000 if isinstance(duration, int | float) and not isinstance(duration, bool) else None
