"""OpenAI Codex's rollouts (~/.codex/sessions/**/rollout-*.jsonl).

An event a line: {"timestamp", "type": "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted",
"payload"}. Items of the Responses API are what the model saw and said; `event_msg` repeats them for the screen, and has
the tokens of each call. In older rollouts the first line is the session ({"id", "timestamp", "instructions"}) and the
others are the items themselves; before these, one document held {"session", "items"}. Where a log has no items (as
`codex exec --json` printed them until 2025, {"id", "msg"}), the messages are read from its events.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.codex_events import event_messages
from apps.trajectories.formats.coding_agents.session import first_text, prompt_task, summed_metrics
from apps.trajectories.formats.event_log import EventLog, same_file
from apps.trajectories.formats.stated import call_metrics
from workers.schema import Step, Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory
from workers.schema.response_items import NAMED_CALLS

SIGN = "events with a `type` and a `payload` of Codex, or items after a line with `id` and `instructions`"
_KINDS = (
    *(
        "session_meta",
        "session.start",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
    ),
    *("inter_agent_communication", "inter_agent_communication_metadata"),
)
_ITEMS = ("message", "reasoning")
_OUTPUTS = ("_call", "_call_output", "_output")
READ = ("/*/type", "/*/payload/type", "/*/msg/type", "/*/ordinal")
REPEATED = (
    *(
        "/*/payload/message",
        "/*/payload/text",
        "/*/payload/last_agent_message",
        "/*/msg",
        "/*/payload/turn_id",
    ),
    *("/*/timestamp", "/*/payload/info", "/*/payload/rate_limits", "/*/payload/cwd"),
)
LEFT_OUT = {"/*/payload/replacement_history": "the messages before, as they were shortened for the model"}
_OF_SESSION = (
    "id",
    "cli_version",
    "cwd",
    "originator",
    "model_provider",
    "git",
    "base_instructions",
    "timestamp",
)
_BY_CLIENT = (
    *(
        "<environment_context>",
        "<user_instructions>",
        "# AGENTS.md instructions",
        "<permissions instructions>",
    ),
    *("<turn_aborted>", "<skill>", "<user_shell_command>", "<INSTRUCTIONS>", "<collaboration_mode>"),
)


class RolloutKeys:
    """A rollout begins with its session; one that a fork copied is not the beginning of another."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def __call__(self, event: Any) -> str | None:
        about = _session_of(event)
        if about is None or str(about.get("id")) in self._named:
            return None
        self._named |= {
            str(about[key]) for key in ("id", "forked_from_id", "parent_thread_id") if about.get(key)
        }
        return str(about.get("id") or id(event))


def Gathered(limit: int) -> EventLog:
    return EventLog(limit, new_key=RolloutKeys, within=same_file)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and any(map(_is_event, document[:3]))
    return _is_event(document)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    if event.get("type") in _KINDS and isinstance(event.get("payload"), dict):
        return True
    if isinstance(event.get("session"), dict) and isinstance(event.get("items"), list):
        return "instructions" in event["session"] or "timestamp" in event["session"]
    if isinstance(message := event.get("msg"), dict) and isinstance(message.get("type"), str):
        return "id" in event
    return _session_of(event) is not None


def _session_of(event: Any) -> dict[str, Any] | None:
    """What an event says of the session, where it is its first."""
    payload = event.get("payload")
    if event.get("type") in ("session_meta", "session.start") and isinstance(payload, dict):
        return payload
    is_header = "type" not in event and {"id", "timestamp", "instructions"} <= event.keys()
    return event if is_header else None


def read(document: Any) -> Trajectory:
    events, _ = clean(_flat(require_list(document)))
    items = [(index, item) for index, event in enumerate(events) if (item := _item(event)) is not None]
    if not any(_is_answer(item) for _, item in items):
        items = event_messages(events)
    places = [index for index, _ in items]
    steps = [
        replace(step, extra=step.extra | {"source_index": places[step.extra["source_index"]]})
        for step in from_messages([item for _, item in items])
    ]
    steps = list(_with_tokens([_by_client(step) for step in steps], events))
    payloads = [payload for event in events if (payload := _payload(event))]
    session = next(
        (found for event in events if isinstance(event, dict) and (found := _session_of(event))), {}
    )
    identity = first_text([session], "id")
    taken = set(places)
    others = [_without_history(event) for index, event in enumerate(events) if index not in taken]
    others = [event for event in others if not isinstance(event, dict) or _session_of(event) is not session]
    metadata = {
        "model": first_text(_of_kind(events, "turn_context"), "model")
        or first_text([*payloads, *events], "model"),
        "usage": _usage(events) or summed_metrics(steps),
        "session": identity,
        "parent": _parent(session),
        **{key: first_text([session, *payloads], key) for key in ("cwd", "originator", "model_provider")},
        "git": session.get("git"),
        "session_meta": {key: value for key, value in session.items() if key not in _OF_SESSION and value},
        "events": others,
    }
    return build_trajectory(
        (*_instructions(session), *steps),
        prompt_task(steps),
        id=identity or None,
        agent="Codex",
        agent_version=first_text([session], "cli_version"),
        metadata={key: value for key, value in metadata.items() if value not in ("", [], {}, None)},
    )


def _flat(events: list[Any]) -> list[Any]:
    found: list[Any] = []
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("items"), list) and "session" in event:
            found += [event["session"], *event["items"]]
        else:
            found.append(event)
    return found


def _item(event: Any) -> dict[str, Any] | None:
    """The item of the Responses API that an event holds; None of one that is none of the conversation."""
    if not isinstance(event, dict):
        return None
    payload = event.get("payload")
    kind = event.get("type")
    if kind == "compacted" and isinstance(payload, dict):
        text = payload.get("message")
        return {"role": "system", "content": text} if isinstance(text, str) and text else None
    if kind == "response_item" and isinstance(payload, dict):
        if "type" not in payload and isinstance(payload.get("role"), str):
            payload = {"type": "message"} | payload
        return _dated(_with_output(payload), event.get("timestamp")) if _is_item(payload) else None
    is_bare = "payload" not in event and isinstance(kind, str)
    return _with_output(event) if is_bare and _is_item(event) else None


def _is_item(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and (kind in _ITEMS or kind.endswith(_OUTPUTS))


def _with_output(item: dict[str, Any]) -> dict[str, Any]:
    """A result whose output is an object with its text, as some versions write it, as one with the text."""
    output = item.get("output")
    if isinstance(output, dict) and isinstance(output.get("content"), str):
        rest = {key: value for key, value in output.items() if key != "content"}
        return item | {"output": output["content"]} | ({"output_fields": rest} if rest else {})
    kind = str(item.get("type"))
    if kind.endswith("_output") and not kind.endswith("_call_output"):
        return item | {"type": kind.removesuffix("_output") + "_call_output"}
    return item


def _dated(item: dict[str, Any], timestamp: Any) -> dict[str, Any]:
    """The item with when it was logged, unless all its fields are the arguments of a call."""
    kind = str(item.get("type"))
    has_room = kind in (*_ITEMS, *NAMED_CALLS) or kind.endswith("_output")
    return item | {"timestamp": timestamp} if has_room and isinstance(timestamp, str) else item


def _is_answer(item: dict[str, Any]) -> bool:
    return item.get("role") == "assistant" or str(item.get("type")).endswith("_call")


def _by_client(step: Step) -> Step:
    """What the client put in front of the prompt is no one's prompt."""
    injected = step.source == "user" and step.text.lstrip().startswith(_BY_CLIENT)
    return replace(step, source="system") if injected else step


def _instructions(session: dict[str, Any]) -> tuple[Step, ...]:
    base = session.get("base_instructions")
    text = base.get("text") if isinstance(base, dict) else None
    if not isinstance(text, str) or not text:
        return ()
    return tuple(
        replace(step, extra={"field": "base_instructions"})
        for step in from_messages([{"role": "system", "content": text}])
    )


def _with_tokens(steps: list[Step], events: list[Any]) -> tuple[Step, ...]:
    """The steps with the tokens of their calls, which the log has after the last item of each."""
    found = list(steps)
    total = None
    for index, event in enumerate(events):
        info = _token_info(event)
        if info is None or info.get("total_token_usage") == total:
            continue  # a count that is logged again
        total = info.get("total_token_usage")
        place = next(
            (
                at
                for at in range(len(found) - 1, -1, -1)
                if found[at].source == "agent" and found[at].extra["source_index"] < index
            ),
            None,
        )
        if place is not None and not found[place].metrics:
            found[place] = replace(found[place], metrics=call_metrics(info.get("last_token_usage")))
    return tuple(found)


def _token_info(event: Any) -> dict[str, Any] | None:
    payload = _payload(event)
    is_count = payload.get("type") == "token_count" and event.get("type") in ("event_msg", None)
    info = payload.get("info") if is_count else None
    return info if isinstance(info, dict) else None


def _usage(events: list[Any]) -> dict[str, Any]:
    """Of all calls, as the last count has it."""
    for event in reversed(events):
        info = _token_info(event)
        if info is not None and isinstance(total := info.get("total_token_usage"), dict):
            return call_metrics(total)
    return {}


def _payload(event: Any) -> dict[str, Any]:
    """What an event of a rollout or of `codex exec` holds."""
    for key in ("payload", "msg") if isinstance(event, dict) else ():
        if isinstance(payload := event.get(key), dict):
            return payload
    return {}


def _of_kind(events: list[Any], kind: str) -> list[dict[str, Any]]:
    return [_payload(event) for event in events if isinstance(event, dict) and event.get("type") == kind]


def _parent(session: dict[str, Any]) -> str:
    source = session.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    spawned = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    return first_text([session, spawned], "parent_thread_id", "forked_from_id")


def _without_history(event: Any) -> Any:
    """An event without what LEFT_OUT names."""
    payload = _payload(event)
    if "replacement_history" not in payload:
        return event
    return event | {"payload": {key: value for key, value in payload.items() if key != "replacement_history"}}
