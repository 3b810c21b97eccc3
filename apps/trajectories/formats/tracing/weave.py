"""Weave (Weights & Biases): calls, a line each, in a list or under `calls`.

A call: {"id", "trace_id", "parent_id", "op_name", "inputs", "output", "started_at", "ended_at", "summary": {"usage"},
"attributes", "thread_id", "exception"}. A call of a model has what one is asked with among
its inputs. Feedback and scores are the outcome's, no step's.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.tracing.observations import (
    READ,
    as_object,
    first_of,
    observation_span,
    outcome_facts,
    store_gatherer,
)
from apps.trajectories.formats.tracing.one_field_spans import KINDS
from apps.trajectories.formats.tracing.otel_spans import Span
from apps.trajectories.formats.tracing.span_content import SpanKind
from apps.trajectories.formats.tracing.span_runs import REPEATED, read
from workers.errors import InvalidRecord
from workers.schema.decode import require_object

__all__ = ["READ", "REPEATED", "SIGN", "Gathered", "read", "sniff"]
SIGN = "a call with `op_name`, `trace_id` and `inputs`, or a list of them as `calls`"
_KNOWN = (
    *("id", "trace_id", "parent_id", "inputs", "output", "started_at", "ended_at", "thread_id"),
    *("display_name", "func_name"),
)
_ASKED = ("messages", "contents", "prompt", "input")
_OF_SELF = ("self",)
_PROVIDERS = (
    *("completions.create", "messages.create", "generate_content", "responses.create", "chat.complete"),
    *("completions.parse", "messages.stream", "litellm", "cohere", "mistral", "groq", "together"),
)


def sniff(document: Any) -> bool:
    if isinstance(document, dict) and isinstance(document.get("calls"), list):
        return bool(document["calls"]) and _is_call(document["calls"][0])
    return _is_call(document)


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord."""
    document = require_object(document)
    calls = document["calls"] if isinstance(document.get("calls"), list) else [document]
    for index, call in enumerate(calls):
        call = require_object(call, pointer=f"/calls/{index}")
        if not all(isinstance(call.get(key), str) for key in ("id", "trace_id")):
            raise InvalidRecord("a call has an id and a trace_id, both as text.", pointer=f"/calls/{index}")
        yield _call(call)


Gathered = store_gatherer(read_spans)


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and {"op_name", "trace_id", "inputs"} <= set(value) and "id" in value


def _call(call: dict[str, Any]) -> Span:
    inputs = as_object(call.get("inputs"))
    summary = as_object(call.get("summary"))
    name = _operation(call.get("op_name"))
    kind = _kind(call, name, inputs)
    usage = as_object(summary.get("usage"))
    model, counts = next(iter(usage.items()), ("", {}))
    costs = as_object(as_object(summary.get("weave")).get("costs")).get(model)
    parent = call.get("parent_id")
    facts: dict[str, Any] = {}
    if not parent:
        feedback = as_object(as_object(summary.get("weave")).get("feedback"))
        facts = outcome_facts(as_object(call.get("scores")), as_object(call.get("attributes")), inputs)
        facts |= {"agent": name} | ({"feedback": feedback} if feedback else {})
    own = {key: value for key, value in inputs.items() if key in _OF_SELF}
    return observation_span(
        call | own,
        trace=call["trace_id"],
        id=call["id"],
        parent=parent,
        kind=kind,
        given={key: value for key, value in inputs.items() if key not in _OF_SELF} or call.get("inputs"),
        gave=first_of(call.get("output"), call.get("exception") if kind == "tool" else None),
        start=call.get("started_at"),
        end=call.get("ended_at"),
        known=_KNOWN,
        is_error=bool(call.get("exception")),
        facts=facts,
        name=first_of(call.get("display_name"), name) if kind != "tool" else name,
        model=first_of(as_object(call.get("output")).get("model"), inputs.get("model"), model)
        if kind == "model"
        else None,
        usage=counts if kind == "model" and isinstance(counts, dict) else None,
        cost=_cost(costs) if kind == "model" else None,
        conversation=call.get("thread_id"),
    )


def _operation(value: Any) -> str:
    """weave:///entity/project/op/NAME:VERSION is NAME."""
    return str(value or "").rpartition("/")[2].partition(":")[0]


def _kind(call: dict[str, Any], name: str, inputs: dict[str, Any]) -> SpanKind:
    attributes = as_object(call.get("attributes"))
    stated = first_of(attributes.get("kind"), as_object(attributes.get("weave")).get("kind"))
    if isinstance(stated, str) and stated.lower() in KINDS:
        return KINDS[stated.lower()]
    output = as_object(call.get("output"))
    is_asked = any(inputs.get(key) for key in _ASKED)
    if is_asked and (
        any(part in name.lower() for part in _PROVIDERS)
        or any(isinstance(output.get(key), list) for key in ("choices", "candidates", "generations"))
        or output.get("type") == "message"
        or output.get("object") == "response"
    ):
        return "model"
    if "tool" in name.lower():
        return "tool"
    return "agent" if name.lower().endswith("agent") else "chain"


def _cost(costs: Any) -> float | None:
    names = ("prompt_tokens_total_cost", "completion_tokens_total_cost")
    values = (
        [costs[key] for key in names if isinstance(costs.get(key), int | float)]
        if isinstance(costs, dict)
        else []
    )
    return sum(values) if values else None
