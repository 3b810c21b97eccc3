"""Claude Code's sessions (~/.claude/projects/*/*.jsonl), and what `claude -p --output-format stream-json` prints.

An event a line: {"type": "user" | "assistant" | "system" | "summary" | "attachment" | ..., "message": a message of
Anthropic's API, "uuid", "parentUuid", "sessionId", "isSidechain", "cwd", "gitBranch", "version", "toolUseResult"}. Each
block of an answer is a line of its own with the answer's `message.id`; its usage counts once. Sub-agents (sidechains,
in files of their own or not) and branches that a person went back from (`claude_branches`) are trajectories whose
metadata names the session as `parent`. stream-json has
`session_id` and ends with a `result` of cost, turns and `is_error`; an error is a failure, the end of a run without one
says nothing of success. Exports of sessions on the web hold the events as `loglines`, recordings of the Agent SDK as
`messages` ({"direction", "message"}). Cursor's command line prints the same events with `tool_call` in between. Droid's
begins with the same event, and is given to its reader.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.coding_agents import droid
from apps.trajectories.formats.coding_agents.claude_branches import MARK, branches
from apps.trajectories.formats.coding_agents.claude_events import (
    SHARED,
    RunKeys,
    conversation,
    is_answer,
    message_of,
    sdk_events,
)
from apps.trajectories.formats.coding_agents.session import (
    first_text,
    prompt_task,
    summed_metrics,
    with_usage,
)
from apps.trajectories.formats.event_log import EventLog
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Step, Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "events with a `type` and a `message`, `sessionId` or `session_id` of Claude Code"
_STATE = (
    *("file-history-snapshot", "queue-operation", "progress", "attachment", "permission-mode", "last-prompt"),
    *("custom-title", "ai-title", "agent-name", "agent-setting", "mode", "pr-link", "worktree-state"),
)
_READ_KEYS = (
    *(key for key in SHARED if key != "message"),
    *("is_error", "subtype", "call_id", "tool_call/*/args", "tool_call/*/result"),
    "message/usage",  # each line of a message states it, with fewer tokens than the last
)
_REPEATED_KEYS = ("uuid", "parentUuid", "requestId", "message/model", "message/id", "message/stop_reason")
_AT = ("/*", "/*/loglines/*", "/*/messages/*/message")
READ = tuple(f"{at}/{key}" for at in _AT for key in _READ_KEYS)
REPEATED = tuple(f"{at}/{key}" for at in _AT for key in _REPEATED_KEYS)
LEFT_OUT = {
    "/*/snapshot": "the client's copies of files, from which it can undo",
    "/*/event": "a piece of an answer as it was streamed; the answer is read",
    "/*/data": "progress that the client showed",
}
_PIECES = ("stream_event", "keep_alive", "control_request", "control_response")
_LARGE = ("snapshot", "event", "data")  # of LEFT_OUT


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document for each branch of the session. Raises InvalidRecord."""
    events = require_list(document)
    found = branches(_flat(events))
    if len(found) == 1:
        yield "", document
        return
    for each in found:
        yield "", each


def Gathered(limit: int) -> EventLog:
    return EventLog(limit, new_key=RunKeys, answers=is_answer, within=_session_file)


def _session_file(source: str) -> str:
    """SESSION.jsonl, and SESSION/subagents/agent-ID.jsonl, are of one session."""
    folder, _, _ = source.rpartition("/")
    return (
        folder.removesuffix("/subagents") if folder.endswith("/subagents") else source.removesuffix(".jsonl")
    )


def sniff(document: Any) -> bool:
    if isinstance(document, dict):
        lines = document.get("loglines")
        lines = lines if isinstance(lines, list) else sdk_events(document)
        return _is_event(document) or any(map(_is_event, lines[:5]))
    return isinstance(document, list) and any(map(_is_event, document[:5]))


def _is_event(event: Any) -> bool:
    kind = event.get("type") if isinstance(event, dict) else None
    if message_of(event) is not None:
        return "role" not in event and (isinstance(event["message"], dict) or "uuid" in event)
    named = "sessionId" in event or "session_id" in event or "uuid" in event if kind else False
    if kind == "summary":
        return "leafUuid" in event
    if kind in ("system", "result"):
        return isinstance(event.get("subtype"), str) and (
            named or "is_error" in event or "mcp_servers" in event
        )
    if kind == "file-history-snapshot":
        return True
    return kind in _STATE and (named or kind.removesuffix("-operation") in event or kind in event)


def read(document: Any) -> Trajectory:
    events, _ = clean(_flat(require_list(document)))
    if any(map(droid.is_of_droid, events)):
        return droid.read(events)
    branch = first_text(events[:1], MARK)
    events = events[1:] if branch else events
    found = conversation(events)
    steps = tuple(with_usage(step) for step in from_messages(found.messages))
    ends = [event for event in found.others if isinstance(event, dict) and event.get("type") == "result"]
    if not any(step.source == "agent" for step in steps):
        steps = (*steps, *_result_steps(ends))
    spoken = [message_of(event) for event in events]
    about = [event for event in events if isinstance(event, dict)]
    session = first_text(about, "sessionId", "session_id")
    sub_agent = _sub_agent(about)
    model = next((name for each in spoken if (name := first_text([each], "model")) and name[0] != "<"), "")
    usage = summed_metrics(steps)
    last = ends[-1] if ends else {}
    facts = run_facts(
        last | {"seconds": _seconds(last)},
        last.get("usage"),
        usage,
        model=model or first_text(about, "model"),
    )
    others = [event for event in found.others if event not in ends]
    metadata = {
        **facts,
        "usage": usage | facts.get("usage", {}),
        "session": session,
        "parent": session if sub_agent or branch else "",
        "branch": branch,
        "call": first_text(about, "parent_tool_use_id"),
        "title": first_text(about, "customTitle", "aiTitle", "summary"),
        **{key: first_text(about, key) for key in ("cwd", "gitBranch", "slug", "entrypoint", "userType")},
        "result": last,
        "events": [_kept(event) for event in others if not _is_piece(event)],
    }
    return build_trajectory(
        steps,
        prompt_task(steps),
        id="/".join(filter(None, (session, sub_agent, branch))) or None,
        agent="Cursor" if any(event.get("type") == "tool_call" for event in about) else "Claude Code",
        agent_version=first_text(about, "version", "claude_code_version"),
        success=False if last.get("is_error") is True else None,
        metadata={key: value for key, value in metadata.items() if value not in ("", [], {}, None)},
    )


def _flat(events: list[Any]) -> list[Any]:
    """The events, those of an export of a session on the web included, and those that an SDK sent and received."""
    found: list[Any] = []
    for event in events:
        if sent := sdk_events(event):
            rest = {key: value for key, value in event.items() if key != "messages"}
            found += [*([rest] if rest else []), *sent]
            continue
        lines = event.get("loglines") if isinstance(event, dict) else None
        rest = (
            {key: value for key, value in event.items() if key != "loglines"} if lines is not None else event
        )
        found += [*([rest] if rest else []), *lines] if isinstance(lines, list) else [event]
    return found


def _sub_agent(events: list[dict[str, Any]]) -> str:
    """What names the sub-agent whose events these are; empty for the session's own."""
    if call := first_text(events, "parent_tool_use_id"):
        return call
    first = next((event for event in events if event.get("isSidechain") is True), None)
    return (
        "" if first is None else first_text(events, "agentId") or first_text([first], "uuid") or "sidechain"
    )


def _result_steps(ends: list[dict[str, Any]]) -> tuple[Step, ...]:
    """The answer that a `result` alone has, as `--output-format json` prints it."""
    answers = [end["result"] for end in ends if isinstance(end.get("result"), str) and end["result"]]
    if not ends and not answers:
        raise InvalidRecord(
            "the events have no message of the agent, so there is nothing to judge or score. Send the log with the "
            "answers of the agent."
        )
    return from_messages([{"role": "assistant", "content": answer} for answer in answers])


def _seconds(end: dict[str, Any]) -> float | None:
    duration = end.get("duration_ms")
    return duration / 1000 if isinstance(duration, int | float) and not isinstance(duration, bool) else None


def _is_piece(event: Any) -> bool:
    return isinstance(event, dict) and event.get("type") in _PIECES


def _kept(event: Any) -> Any:
    return (
        {key: value for key, value in event.items() if key not in _LARGE}
        if isinstance(event, dict)
        else event
    )
