"""Chat messages to steps, and back to OpenAI's.

system/developer -> `system`, user -> `user`, assistant -> `agent`; a tool (or legacy function) message becomes an
observation result of the agent step that called it (`tool_results`). Messages of other APIs are first made OpenAI's
(`message_shapes`). The `name` of a message is its step's speaker; that of a tool message is the tool's. What has no
place of its own is kept in `extra`.
"""

import json
from typing import Any

from msgspec.structs import replace

from workers.errors import InvalidRecord
from workers.schema.chat_text.thinking import split_thinking
from workers.schema.decode import (
    clean,
    finite,
    is_clean,
    json_type_name,
    optional_str,
    require_list,
    require_object,
)
from workers.schema.message_parts import KNOWN_MEDIA, TEXT_TYPES, block_type, is_note, media_part, text_part
from workers.schema.message_shapes import chat_messages
from workers.schema.records import ObservationResult, Part, Source, Step, Task, ToolCall, Trajectory
from workers.schema.tool_results import ORPHAN, CallPairing, MadeCall, with_results

_ROLES: dict[str, Source] = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}
_KNOWN = frozenset(
    (
        *("role", "content", "tool_calls", "function_call", "reward"),
        *("reasoning_content", "reasoning", "thinking", "refusal"),
    )
)
_REASONING = ("reasoning_content", "reasoning", "thinking")  # one thing, as servers name it
_Answers = dict[int, list[tuple[ObservationResult, MadeCall]]]  # of each step's calls
_FIELD = "field"  # of a part that was a field of its message, next to `content`
_CALL_KNOWN, _RESULT_KNOWN = frozenset(("id", "function")), frozenset(("role", "content", "tool_call_id"))
_MEDIA = {"image_url": "image", "input_audio": "audio", "video_url": "video", "file": "file"}


def from_messages(messages: Any, *, pointer: str = "") -> tuple[Step, ...]:
    """Steps of a list of chat messages. Raises InvalidRecord with the pointer of the bad message."""
    steps: list[Step] = []
    calls = CallPairing()
    answers: _Answers = {}
    all_clean = is_clean(require_list(messages, pointer=pointer))
    for index, message in chat_messages(messages):
        try:
            message, replaced = (message, 0) if all_clean else clean(message)
            _add(require_object(message), index, replaced, steps, calls, answers)
        except InvalidRecord as error:
            raise error.at(f"{pointer}/{index}") from None
    for place, results in answers.items():
        steps[place] = with_results(steps[place], results)
    return tuple(steps)


def _add(
    message: dict[str, Any],
    index: int,
    replaced: int,
    steps: list[Step],
    calls: CallPairing,
    answers: _Answers,
) -> None:
    role = message.get("role")
    if role in ("tool", "function"):
        call, result = _result(message, calls)
        if call is None:
            extra = _count_replaced({"source_index": index, ORPHAN: True}, replaced)
            steps.append(Step(source="environment", observation=(result,), extra=extra))
            return
        answers.setdefault(call.step, []).append((result, call))
        if replaced:
            step = steps[call.step]
            steps[call.step] = replace(step, extra=_count_replaced(step.extra, replaced))
        return
    kind = message.get("type")
    if role is None and isinstance(kind, str) and kind.isidentifier() and kind.islower():
        steps.append(_unknown_item(kind, message, _count_replaced({"source_index": index}, replaced)))
        return
    if not isinstance(role, str) or role not in _ROLES:
        known = ", ".join([*_ROLES, "tool", "function"])
        if role is None and isinstance(kind, str):
            raise InvalidRecord(
                f"an item of the type {kind[:60]!r} is no message, no named call and no result; leave it out.",
                pointer="/type",
            )
        raise InvalidRecord(f"unknown role {role!r}; known are {known}.", pointer="/role")
    step = _step(message, _ROLES[role], _count_replaced({"source_index": index}, replaced))
    if step.source == "agent" or step.tool_calls:
        calls.add_step(len(steps), step.tool_calls)
    steps.append(step)


def _unknown_item(kind: str, item: dict[str, Any], extra: dict[str, Any]) -> Step:
    """An item of the Responses API of a kind that is not read: as text, and named."""
    text = json.dumps(item, ensure_ascii=False, sort_keys=True)
    return Step(
        source="environment",
        observation=(ObservationResult(content=(Part(text=text),)),),
        extra=extra | {"message": {"items": {"type": kind}}},
    )


def from_prompt_response(prompt: Any, response: Any, *, pointer: str = "") -> tuple[Step, ...]:
    """prompt: text (one user step; none if empty) or chat messages; response: the agent's text or messages."""
    if isinstance(prompt, str):
        before: Any = [{"role": "user", "content": prompt}] if prompt else []
    elif isinstance(prompt, list):
        before = prompt
    else:
        raise InvalidRecord(
            f"expected a string or chat messages, got {json_type_name(prompt)}.", pointer=f"{pointer}/prompt"
        )
    if isinstance(response, str):
        after: Any = [{"role": "assistant", "content": response}]
    elif isinstance(response, list):
        after = response
    else:
        raise InvalidRecord(
            f"expected a string, got {json_type_name(response)}.", pointer=f"{pointer}/response"
        )
    from_messages(before, pointer=f"{pointer}/prompt")  # for an error that points into the right field
    return from_messages([*before, *after], pointer=pointer)


def to_messages(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Chat messages of a trajectory; equal to the input for one that came from chat messages."""
    messages: list[dict[str, Any]] = []
    for step in trajectory.steps:
        kept = step.extra.get("message", {})
        if step.source == "environment" and step.extra.get(ORPHAN):
            messages += [_result_out(result) for result in step.observation]
            continue
        if step.source == "environment":
            named = {} if step.speaker is None else {"name": step.speaker}
            messages += [
                {"role": "user"} | named | {"content": _content(result.content)}
                for result in step.observation
            ]
            continue
        role = {"agent": "assistant"}.get(step.source, step.source)
        content = tuple(part for part in step.message if _FIELD not in part.extra)
        message = {"role": kept.get("role", role), "name": step.speaker, "content": _content(content)}
        message |= {part.extra[_FIELD]: part.text for part in step.message if _FIELD in part.extra}
        if "think" in step.extra:
            opening, closing = step.extra["think"]
            message["content"] = f"{opening}{step.reasoning or ''}{closing}{message['content'] or ''}"
        elif step.reasoning is not None:
            message[step.extra.get("reasoning_key", "reasoning_content")] = step.reasoning
        if step.tool_calls and step.extra.get("function_call"):
            call = step.tool_calls[0]
            message["function_call"] = {"name": call.name, "arguments": call.arguments_text}
        elif step.tool_calls:
            message["tool_calls"] = [_call_out(call) for call in step.tool_calls]
        if step.reward is not None:
            message["reward"] = step.reward
        messages.append(message | kept)
        messages += [_result_out(result) for result in step.observation]
    return [
        {key: value for key, value in message.items() if value is not None or key == "content"}
        for message in messages
    ]


def parts_of(content: Any, *, pointer: str = "") -> tuple[Part, ...]:
    """Message content (null, text, or content parts) as parts."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (Part(text=content),)
    return tuple(
        _part(part, f"{pointer}/{index}") for index, part in enumerate(require_list(content, pointer=pointer))
    )


def _refuse(constant: str) -> float:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # NaN is no JSON: such arguments are text
_ENCODER = json.JSONEncoder(ensure_ascii=False)  # as ToolCall.arguments_text


def decode_arguments(raw: Any, *, pointer: str = "") -> tuple[dict[str, Any] | str, str | None]:
    """A call's arguments as an object where they are one, and their text where encoding would not give it back."""
    if isinstance(raw, dict):
        return raw, None
    if not isinstance(raw, str):
        raise InvalidRecord(
            f"expected the arguments as text or an object, got {json_type_name(raw)}.", pointer=pointer
        )
    try:
        decoded = _DECODER.decode(raw)
    except (ValueError, RecursionError):
        return raw, None
    if not isinstance(decoded, dict):
        return raw, None
    decoded, _ = clean(decoded)
    return decoded, None if _ENCODER.encode(decoded) == raw else raw


def build_trajectory(steps: tuple[Step, ...], task: Task, *, pointer: str = "", **fields: Any) -> Trajectory:
    """A trajectory that has at least one agent step, else InvalidRecord. fields: Trajectory's other fields."""
    if not any(step.source == "agent" for step in steps):
        raise InvalidRecord("has no agent step, so there is nothing to judge or score.", pointer=pointer)
    return Trajectory(steps=steps, task=task, **fields)


def _step(message: dict[str, Any], source: Source, extra: dict[str, Any]) -> Step:
    kept = dict(_without(message, _KNOWN))
    speaker = kept.pop("name") if isinstance(kept.get("name"), str) and kept["name"] else None
    if message["role"] == "developer":
        kept["role"] = "developer"
    reasoning_key = next((key for key in _REASONING[:2] if message.get(key) is not None), _REASONING[0])
    reasoning = optional_str(message.get(reasoning_key), pointer=f"/{reasoning_key}")
    kept |= {key: message[key] for key in _REASONING if message.get(key) and message[key] != reasoning}
    if reasoning_key != _REASONING[0]:
        extra["reasoning_key"] = reasoning_key
    if message.get("function_call") and not message.get("tool_calls"):
        extra["function_call"] = True
    content = message.get("content")
    parts = parts_of(content, pointer="/content")
    if source == "agent" and reasoning is None and isinstance(content, str):
        thinking = split_thinking(content)
        if thinking is not None:
            extra["think"] = [thinking.before, thinking.after]
            reasoning = thinking.reasoning
            parts = (Part(text=thinking.text),) if thinking.text else ()
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts += (Part(text=refusal, extra={"type": "refusal", _FIELD: "refusal"}),)
    elif refusal is not None:
        kept["refusal"] = refusal
    if kept:
        extra["message"] = kept
    return Step(
        source=source,
        speaker=speaker,
        message=parts,
        reasoning=reasoning,
        tool_calls=_calls(message),
        reward=finite(message.get("reward"), pointer="/reward"),
        extra=extra,
    )


def _calls(message: dict[str, Any]) -> tuple[ToolCall, ...]:
    out = []
    for index, call in enumerate(require_list(message.get("tool_calls") or [], pointer="/tool_calls")):
        where = f"/tool_calls/{index}"
        call = require_object(call, pointer=where)
        function = require_object(call.get("function"), pointer=f"{where}/function")
        out.append(_call(function, call, f"{where}/function"))
    if legacy := message.get("function_call"):
        one = _call(require_object(legacy, pointer="/function_call"), {}, "/function_call")
        if all((call.name, call.arguments) != (one.name, one.arguments) for call in out):
            out.append(one)  # next to `tool_calls` it is most often one of them
    return tuple(out)


def _call(function: dict[str, Any], call: dict[str, Any], at: str) -> ToolCall:
    if not isinstance(function.get("name"), str):
        raise InvalidRecord("a tool call needs the name of its function as text.", pointer=f"{at}/name")
    arguments, raw = decode_arguments(function.get("arguments", ""), pointer=f"{at}/arguments")
    kept = _without(call, _CALL_KNOWN)
    return ToolCall(
        id=optional_str(call.get("id")),
        name=function["name"],
        arguments=arguments,
        raw=raw,
        extra={} if kept in ({}, {"type": "function"}) else {"call": kept},
    )


def _call_out(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments_text}
    named = {} if call.id is None else {"id": call.id}
    return named | {"type": "function"} | call.extra.get("call", {}) | {"function": function}


def _result_out(result: ObservationResult) -> dict[str, Any]:
    tied = {"role": "tool", "tool_call_id": result.call_id}
    return tied | {"content": _content(result.content)} | result.extra.get("message", {})


def _result(message: dict[str, Any], calls: CallPairing) -> tuple[MadeCall | None, ObservationResult]:
    """The call that it answers, None for an orphan."""
    identity, name = message.get("tool_call_id"), message.get("name")
    if identity is not None and not isinstance(identity, str):
        raise InvalidRecord(f"expected a string, got {json_type_name(identity)}.", pointer="/tool_call_id")
    name = name if isinstance(name, str) else None
    kept = _without(message, _RESULT_KNOWN)
    if message["role"] == "function":
        kept["role"] = "function"
        call = calls.find_function(name or "")
    else:
        call = calls.find_call(identity, name)
    if call is None or call.id != identity:
        kept |= {key: message[key] for key in ("tool_call_id",) if message.get(key) is not None}
    result = ObservationResult(
        call_id=call.id if call else None,
        content=parts_of(message.get("content"), pointer="/content"),
        extra={"message": kept} if kept else {},
    )
    return call, result


def _part(part: Any, at: str) -> Part:
    part = require_object(part, pointer=at)
    kind = block_type(part)
    if kind in TEXT_TYPES:
        return text_part(part, kind, at)
    if kind in _MEDIA:
        body = part.get(kind)
        source = body.get("url") or body.get("data") if isinstance(body, dict) else body
        if source is not None:
            return Part(
                type=_MEDIA[kind],  # type: ignore[arg-type]
                source=optional_str(source, pointer=f"{at}/{kind}"),
                extra={"part": part},
            )
    if (found := media_part(part, kind)) is not None:
        return found
    if is_note(kind):
        return Part(text=json.dumps(part, ensure_ascii=False), extra={"type": kind})
    known = ", ".join(["text", *KNOWN_MEDIA])
    raise InvalidRecord(
        f"unknown content part {part.get('type')!r}; known are {known}.", pointer=f"{at}/type"
    )


def _content(parts: tuple[Part, ...]) -> Any:
    if not parts:
        return None
    if len(parts) == 1 and parts[0].type == "text" and not parts[0].extra:
        return parts[0].text
    return [part.extra.get("part") or _part_out(part) for part in parts]


def _part_out(part: Part) -> dict[str, Any]:
    if part.type == "text":
        return {"type": "text", "text": part.text} | part.extra
    return {"type": "image_url" if part.type == "image" else part.type, "image_url": {"url": part.source}}


def _without(given: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {} if given.keys() <= known else {key: value for key, value in given.items() if key not in known}


def _count_replaced(extra: dict[str, Any], replaced: int) -> dict[str, Any]:
    """Mark how many NUL characters and lone surrogates were replaced."""
    return (
        extra | {"replaced_characters": extra.get("replaced_characters", 0) + replaced} if replaced else extra
    )
