"""Traces of OpenAI's Agents SDK as its exporters write them: {"object": "trace", "id", "workflow_name"} and
{"object": "trace.span", "trace_id", "parent_id", "span_data": {"type": "generation", "input", "output"}}, one a record,
in a list, or as `spans` of an object.

Generations hold the messages: each begins with those before it. Spans of responses most often have but an id; then the
calls of tools (`function` spans) are all there is of the run.
"""

import json
from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.placed import (
    MessageReader,
    Placed,
    object_at,
    objects,
    placed,
    storable,
    summed,
    text_at,
)
from apps.trajectories.formats.stated import run_facts
from workers.errors import InvalidRecord
from workers.schema import Task, Trajectory
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "an object with `object` trace or trace.span, as the Agents SDK exports them"
REPEATED = ("/*/span_data/input", "/*/span_data/output", "/*/spans", "/*/data")


def _trace_of(record: Any) -> str | None:
    if not isinstance(record, dict):
        return None
    return text_at(record, "trace_id") or text_at(record, "id") or None


Gathered = event_log(key=_trace_of)


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_record, document[:3]))
    return _is_record(document) or _is_record(next(iter(_spans(document)), None))


def _is_record(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("object") not in ("trace", "trace.span"):
        return False
    return value["object"] == "trace" or isinstance(value.get("span_data"), dict)


def _spans(document: Any) -> list[dict[str, Any]]:
    for key in ("spans", "data") if isinstance(document, dict) else ():
        if found := objects(document.get(key)):
            return found
    return []


@storable
def read(document: Any) -> Trajectory:
    records = objects(document if isinstance(document, list) else [document])
    spans = [span for record in records for span in (_spans(record) or [record]) if "span_data" in span]
    spans.sort(key=lambda span: str(span.get("started_at") or ""))
    trace = next((each for each in records if each.get("object") == "trace"), {})
    trace = trace or object_at(records[0] if records else {}, "trace")
    messages, speakers = _of_generations(spans)
    if not messages:
        messages, speakers = _of_functions(spans)
    if not messages:
        raise InvalidRecord(
            "the spans of the trace hold no messages and no calls of tools, so there is no run to read; export them "
            "with their data (generation spans), or send the result's `to_input_list()`."
        )
    steps, facts = MessageReader(model=lambda message: "").read(messages, speakers)
    data = [object_at(span, "span_data") for span in spans]
    usages = [object_at(each, "usage") for each in data]
    agents = [text_at(each, "name") for each in data if each.get("type") == "agent"]
    model = next((text_at(each, "model") for each in data if text_at(each, "model")), "")
    about = {
        key: value for key, value in trace.items() if key not in ("object", "id", "spans", "data") and value
    }
    totals = run_facts(summed(usages), model=model)
    identity = text_at(trace, "id", "trace_id") or (text_at(spans[0], "trace_id") if spans else "")
    return build_trajectory(
        steps, Task(id=""), id=identity or None, agent=(agents or [model])[0], metadata=facts | totals | about
    )


def _agent_of(span: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> str:
    """The name of the agent that a span is within."""
    for _ in range(len(by_id)):
        data = object_at(span, "span_data")
        if data.get("type") == "agent":
            return text_at(data, "name")
        parent = by_id.get(str(span.get("parent_id")))
        if parent is None:
            return ""
        span = parent
    return ""


def _of_generations(spans: list[dict[str, Any]]) -> tuple[list[Placed], dict[int, str]]:
    by_id = {str(span.get("id")): span for span in spans}
    found: list[Placed] = []
    speakers: dict[int, str] = {}
    seen: list[str] = []
    for index, span in enumerate(spans):
        data = object_at(span, "span_data")
        if data.get("type") not in ("generation", "response"):
            continue
        answered = object_at(data, "response").get("output", data.get("output"))
        for name, value in (("input", data.get("input")), ("output", answered)):
            known = iter(list(seen))
            for pointer, message in placed(value, f"/{index}/span_data/{name}"):
                encoded = json.dumps(message, sort_keys=True)
                if name == "input" and any(each == encoded for each in known):
                    continue
                if name == "output":
                    speakers[len(found)] = _agent_of(span, by_id)
                seen.append(encoded)
                found.append((pointer, message))
    return (found, speakers) if speakers else ([], {})


def _of_functions(spans: list[dict[str, Any]]) -> tuple[list[Placed], dict[int, str]]:
    by_id = {str(span.get("id")): span for span in spans}
    found: list[Placed] = []
    speakers: dict[int, str] = {}
    for index, span in enumerate(spans):
        data = object_at(span, "span_data")
        if data.get("type") != "function" or not text_at(data, "name"):
            continue
        identity = str(span.get("id") or index)
        call = {
            "id": identity,
            "type": "function",
            "function": {"name": data["name"], "arguments": data.get("input")},
        }
        speakers[len(found)] = _agent_of(span, by_id)
        found.append((f"/{index}", {"role": "assistant", "content": None, "tool_calls": [call]}))
        if data.get("output") is not None:
            result = {"role": "tool", "tool_call_id": identity, "content": result_content(data["output"])}
            found.append((f"/{index}", result))
    return found, speakers
