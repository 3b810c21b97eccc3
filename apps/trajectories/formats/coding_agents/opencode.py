"""opencode: a session as `opencode export` writes it, and the events of `opencode run --format json`.

{"info": {"id", "title", "directory", "version", "parentID"?}, "messages": [{"info": {"role", "modelID", "tokens",
"cost"}, "parts": [{"type": "text" | "reasoning" | "tool" | "file" | "step-finish" | ..., ...}]}]}. A tool's part has
its call and its result: {"callID", "tool", "state": {"status", "input", "output"}}; before 2025-07 `toolInvocation`. An
event is {"type", "timestamp", "sessionID", "part"}.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.session import first_text, prompt_task, summed_metrics
from apps.trajectories.formats.event_log import event_log, same_file
from apps.trajectories.formats.stated import call_metrics, run_facts
from workers.schema import Step, Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "an object with `info` and `messages` that have `info` and `parts`, or events with a `sessionID` and a `part`"
Message = dict[str, Any]
_TOKENS = {"input": "input_tokens", "output": "output_tokens", "reasoning": "reasoning_tokens"}
READ = (
    *(
        "/*/messages/*/info/role",
        "/*/messages/*/role",
        "/*/messages/*/parts/*/type",
        "/*/type",
        "/*/part/type",
    ),
    *("/*/messages/*/parts/*/state/status", "/*/part/state/status"),
)
REPEATED = tuple(
    f"{at}/{key}"
    for at in ("/*/messages/*/info", "/*/messages/*/parts/*", "/*/part", "/*")
    for key in (
        "sessionID",
        "messageID",
        "tokens",
        "cost",
        "id",
        "providerID",
        "modelID",
        "path",
        "mode",
        "time",
    )
)
Gathered = event_log(
    key=lambda event: first_text([event, event.get("info")], "sessionID", "id") or None, within=same_file
)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    if isinstance(document.get("part"), dict) and "sessionID" in document:
        return True
    messages = document.get("messages")
    if not isinstance(document.get("info"), dict) or not isinstance(messages, list):
        return False
    return all(isinstance(each, dict) and isinstance(each.get("parts"), list) for each in messages[:3])


def read(document: Any) -> Trajectory:
    events, _ = clean(require_list(document))
    written: list[Message] = []
    around: list[Any] = []
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("messages"), list):
            written += [each for each in event["messages"] if isinstance(each, dict)]
            around.append({key: value for key, value in event.items() if key != "messages"})
        elif isinstance(event, dict) and isinstance(event.get("part"), dict):
            _add_part(written, event)
        else:
            around.append(event)
    messages, places = [], []
    for index, each in enumerate(written):
        found = _messages(each)
        messages += found
        places += [index] * len(found)
    steps = _with_tokens(from_messages(messages), [written[place] for place in places])
    holders = [
        each["info"] for each in around if isinstance(each, dict) and isinstance(each.get("info"), dict)
    ]
    session: Message = holders[0] if holders else {}
    infos = [each.get("info") for each in written]
    usage = summed_metrics(steps)
    cost = {"cost": usage.pop("cost")} if "cost" in usage else {}
    facts = run_facts(cost, usage, model=first_text([*infos, *_models(infos)], "modelID"))
    identity = first_text([session], "id") or first_text(events, "sessionID")
    metadata = facts | {"usage": usage | facts.get("usage", {}), "session": identity, "around": around}
    metadata |= {
        key: first_text([session], name) for key, name in (("parent", "parentID"), ("title", "title"))
    }
    metadata["cwd"] = first_text([session], "directory")
    return build_trajectory(
        steps,
        prompt_task(steps),
        id=identity or None,
        agent="opencode",
        agent_version=first_text([session], "version"),
        metadata={key: value for key, value in metadata.items() if value not in ("", [], {}, None)},
    )


def _models(infos: list[Any]) -> list[Any]:
    return [info.get("model") for info in infos if isinstance(info, dict)]


def _add_part(written: list[Message], event: Message) -> None:
    """A part that was printed alone: of the message before, if that is its own. What a person wrote is not printed."""
    part = event["part"]
    identity = part.get("messageID")
    if not written or written[-1]["info"].get("id") != identity:
        written.append({"info": {"id": identity, "role": "assistant"}, "parts": []})
    written[-1]["parts"].append(part)
    written[-1].setdefault("events", []).append({key: value for key, value in event.items() if key != "part"})


def _messages(written: Message) -> list[Message]:
    """The message of a person, or the turns of the agent: a turn ends where text comes after a call."""
    info = written.get("info")
    info = (
        info if isinstance(info, dict) else {key: value for key, value in written.items() if key != "parts"}
    )
    role = str(info.get("role"))
    about: Message = {"info": info} | {key: written[key] for key in ("events", "metadata") if key in written}
    found: list[Message] = []
    results: list[Message] = []
    for part in require_list(written.get("parts") or [], pointer="/parts"):
        if not isinstance(part, dict):
            part = {"type": "text", "text": str(part)}
        kind = str(part.get("type"))
        begins = kind in ("text", "reasoning", "step-start") and bool(results)
        if begins or not found:
            found += results
            results = []
            found.append({"role": role, "content": [], **(about if not found else {})})
        _add(found[-1], part, kind, results)
    found += results
    for message in found:
        if message.get("content") == []:
            message["content"] = None
    return found or [{"role": role, "content": None, **about}]


def _add(message: Message, part: Message, kind: str, results: list[Message]) -> None:
    rest = {
        key: value for key, value in part.items() if key not in ("type", "text", "state", "tool", "callID")
    }
    if kind == "text" and isinstance(part.get("text"), str):
        message["content"].append({"type": "text", "text": part["text"]} | rest)
    elif kind == "reasoning" and isinstance(part.get("text"), str):
        before = message.get("reasoning_content")
        message["reasoning_content"] = f"{before}\n{part['text']}" if before else part["text"]
        message.setdefault("parts_of_reasoning", []).append(rest)
    elif kind == "file" and isinstance(part.get("url"), str):
        message["content"].append(part | {"type": "file", "media_type": part.get("mime")})
    elif kind in ("tool", "tool-invocation"):
        call, result = _tool(part, rest)
        message.setdefault("tool_calls", []).append(call)
        results += [result] if result is not None else []
    else:
        message.setdefault("other_parts", []).append(part)


def _tool(part: Message, rest: Message) -> tuple[Message, Message | None]:
    state = part.get("state")
    old = part.get("toolInvocation")
    if isinstance(old, dict):
        identity, name = old.get("toolCallId"), old.get("toolName")
        given, gave, kept = old.get("args"), old.get("result"), {"state": old.get("state")}
    else:
        state = state if isinstance(state, dict) else {}
        identity, name, given = part.get("callID"), part.get("tool"), state.get("input")
        gave = state.get("output", state.get("error"))
        kept = rest | {key: value for key, value in state.items() if key not in ("input", "output", "error")}
    function = {"name": str(name), "arguments": given if isinstance(given, str | dict) else {}}
    call = {"id": identity, "type": "function", "function": function} | ({"part": kept} if kept else {})
    if gave is None:
        return call, None
    return call, {"role": "tool", "tool_call_id": identity, "name": name, "content": result_content(gave)}


def _with_tokens(steps: tuple[Step, ...], written: list[Message]) -> tuple[Step, ...]:
    """The last step of each message with its tokens and cost, or those of the step that a part ends."""
    found = list(steps)
    last: dict[int, int] = {}
    for place, step in enumerate(found):
        if step.source == "agent":
            last[id(written[step.extra["source_index"]])] = place
    for message in written:
        if id(message) not in last:
            continue
        place = last.pop(id(message))
        info = message.get("info")
        stated = [info] if isinstance(info, dict) and isinstance(info.get("tokens"), dict) else []
        stated = stated or [part for part in message["parts"] if isinstance(part, dict) and "tokens" in part]
        found[place] = replace(found[place], metrics=_sum(stated))
    return tuple(found)


def _sum(stated: list[Message]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for each in stated:
        tokens = each["tokens"] if isinstance(each["tokens"], dict) else {}
        cache = tokens.get("cache")
        counts = {_TOKENS.get(key, key): value for key, value in tokens.items()} | {"cost": each.get("cost")}
        counts |= {f"cache_{key}": value for key, value in cache.items()} if isinstance(cache, dict) else {}
        for key, value in call_metrics(counts).items():
            total[key] = total.get(key, 0) + value
    return total
