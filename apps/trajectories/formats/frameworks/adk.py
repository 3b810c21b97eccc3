"""Google's Agent Development Kit: sessions, eval sets and their results.

A session has `events`, each with an `author` (`user`, or the name of an agent) and a `content` of Gemini's `parts`. A
case of an eval set has a `conversation` of invocations: `user_content`, what was done (`intermediate_data`) and the
`final_response`. A result of an eval set has the session of each case (`session_details`), or its `actual_invocation`s,
and whether it passed, which is the outcome. Keys may be written in camel case.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.placed import MessageReader, Placed, object_at, objects, storable, text_at
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `events` that have an `author` and a `content`, or with `eval_cases` or `eval_case_results`"
READ = ("/final_eval_status", "/finalEvalStatus")
_CASES = ("eval_cases", "evalCases", "eval_case_results", "evalCaseResults")
_STATUS = {
    1: True,
    2: False,
    "1": True,
    "2": False,
    "PASSED": True,
    "FAILED": False,
    "PASS": True,
    "FAIL": False,
}


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    if any(isinstance(document.get(key), list) for key in _CASES) or _is_case(document):
        return True
    events = document.get("events")
    if not isinstance(events, list):
        return False
    is_session = "last_update_time" in document or "lastUpdateTime" in document or "app_name" in document
    return (not events and is_session) or (bool(events) and all(map(is_event, events[:3])))


def is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("author"), str)
        and ("content" in value or "actions" in value)
    )


def _is_case(value: dict[str, Any]) -> bool:
    turns = value.get("conversation", value.get("actual_invocation"))
    return (
        isinstance(turns, list) and bool(turns) and bool(object_at(turns[0], "user_content", "userContent"))
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document for each case. Raises InvalidRecord."""
    document = require_object(document)
    key = next((key for key in _CASES if isinstance(document.get(key), list)), "")
    if not key:
        yield "", document
        return
    for index, case in enumerate(document[key]):
        yield f"/{key}/{index}", case


@storable
def read(document: Any) -> Trajectory:
    document = require_object(document)
    session = object_at(document, "session_details", "sessionDetails") or document
    at = "" if session is document else "/session_details"
    events = objects(session.get("events"))
    messages = _of_events(events, f"{at}/events") if events else _of_case(document)
    if not messages:
        what = "a result of an eval set" if "final_eval_status" in document else "a session"
        raise InvalidRecord(f"it is {what} of ADK without events, so it holds no run; leave it out.")
    steps, facts = _CONVERSATION.read(messages)
    status = document.get("final_eval_status", document.get("finalEvalStatus"))
    known = (
        "events",
        "conversation",
        "session_details",
        "sessionDetails",
        "id",
        "eval_metric_result_per_invocation",
    )
    around = {
        key: value
        for key, value in (session | document).items()
        if key not in known and value not in ([], {}, None)
    }
    name = text_at(session, "app_name", "appName") or text_at(
        object_at(document, "session_input", "sessionInput"), "app_name", "appName"
    )
    speakers = list(dict.fromkeys(step.speaker for step in steps if step.source == "agent" and step.speaker))
    case = text_at(document, "eval_id", "evalId")
    return build_trajectory(
        steps,
        Task(id=case),
        id=text_at(session, "id") or None,
        agent=name or (speakers[0] if speakers else ""),
        success=_STATUS.get(status)
        if isinstance(status, int | str) and not isinstance(status, bool)
        else None,
        metadata=facts | around,
    )


def _of_events(events: list[dict[str, Any]], at: str) -> list[Placed]:
    found: list[Placed] = []
    for index, event in enumerate(events):
        content = object_at(event, "content")
        if not content.get("parts") or event.get("partial") is True:
            continue
        about = {
            key: value for key, value in event.items() if key not in _READ_OF_EVENT and value not in _EMPTY
        }
        role = "user" if event.get("author") == "user" else "model"
        found.append(
            (
                f"{at}/{index}/content",
                _content(content, role, str(event.get("author") or "")) | _about(about, event),
            )
        )
    return found


_EMPTY: tuple[Any, ...] = (None, "", [], {})
_READ_OF_EVENT = (
    "content",
    "author",
    "usage_metadata",
    "usageMetadata",
    "timestamp",
    "model_version",
    "modelVersion",
)


def _about(about: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    usage = object_at(event, "usage_metadata", "usageMetadata")
    found = {"event": about} if about else {}
    return (
        found
        | ({"usage": usage} if usage else {})
        | ({"model": model} if (model := text_at(event, "model_version", "modelVersion")) else {})
    )


def _content(content: Any, role: str, author: str = "") -> dict[str, Any]:
    """A content with the fields that are set; which role it has is told by its author."""
    parts = content.get("parts", []) if isinstance(content, dict) else content
    parts = [
        {key: value for key, value in part.items() if value is not None} if isinstance(part, dict) else part
        for part in (parts if isinstance(parts, list) else [])
    ]
    parts = [part for part in parts if part]  # one whose text is null has nothing
    return {"role": role, "content": parts} | ({"author": author} if author else {})


def _of_case(document: dict[str, Any]) -> list[Placed]:
    turns, at = document.get("conversation"), "/conversation"
    if not isinstance(turns, list):
        held = document.get(
            "eval_metric_result_per_invocation", document.get("evalMetricResultPerInvocation")
        )
        turns = [object_at(each, "actual_invocation", "actualInvocation") for each in objects(held)]
        at = "/eval_metric_result_per_invocation"
    found: list[Placed] = []
    for index, turn in enumerate(objects(turns)):
        found += [(f"{at}/{index}{within}", message) for within, message in _invocation(turn)]
    return found


def _invocation(turn: dict[str, Any]) -> list[Placed]:
    asked = object_at(turn, "user_content", "userContent")
    found: list[Placed] = [("/user_content", _content(asked, "user"))] if asked else []
    between = object_at(turn, "intermediate_data", "intermediateData")
    at = "/intermediate_data"
    for index, event in enumerate(objects(between.get("invocation_events", between.get("invocationEvents")))):
        content = object_at(event, "content")
        if content.get("parts"):
            found.append(
                (
                    f"{at}/invocation_events/{index}",
                    _content(content, "model", str(event.get("author") or "")),
                )
            )
    calls = objects(between.get("tool_uses", between.get("toolUses")))
    if calls:
        found.append((f"{at}/tool_uses", _content([{"function_call": call} for call in calls], "model")))
    results = objects(between.get("tool_responses", between.get("toolResponses")))
    found += [(f"{at}/tool_responses", _content([{"function_response": each}], "model")) for each in results]
    said = between.get("intermediate_responses", between.get("intermediateResponses"))
    found += [
        (f"{at}/intermediate_responses", _content(response[1], "model", str(response[0])))
        for response in (said if isinstance(said, list) else [])
        if isinstance(response, list) and len(response) == 2
    ]
    if answer := object_at(turn, "final_response", "finalResponse"):
        found.append(("/final_response", _content(answer, "model")))
    return found


def _speaker(message: dict[str, Any]) -> str:
    author = text_at(message, "author")
    return "" if author == "user" else author


_CONVERSATION = MessageReader(_speaker, consumed=("usage", "model", "author"))
