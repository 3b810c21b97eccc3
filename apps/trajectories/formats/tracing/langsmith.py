"""LangSmith: runs, a line each, in a list or under `runs`, with or without `child_runs`.

A run: {"id", "trace_id", "parent_run_id", "run_type": "llm" | "tool" | "chain" | ..., "name", "inputs", "outputs",
"extra": {"metadata", "invocation_params"}, "start_time", "end_time"}. Feedback is the outcome's, no step's.
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
from apps.trajectories.formats.tracing.span_runs import REPEATED, read
from workers.errors import InvalidRecord
from workers.schema.decode import require_object

__all__ = ["READ", "REPEATED", "SIGN", "Gathered", "read", "sniff"]
SIGN = "a run with `run_type` and `inputs`, a list of them as `runs`, or a batch of `post` and `patch`"
_KNOWN = (
    "id",
    "trace_id",
    "parent_run_id",
    "name",
    "inputs",
    "outputs",
    "start_time",
    "end_time",
    "child_runs",
    "run_id",
)
_DEEPEST = 64
_ID_LENGTH = 36  # of a UUID
_MODELS = ("model", "model_name", "model_id", "deployment_name")


def sniff(document: Any) -> bool:
    if isinstance(document, dict) and isinstance(document.get("runs"), list):
        return bool(document["runs"]) and _is_run(document["runs"][0])
    return _is_run(document) or _is_batch(document)


def read_spans(document: Any) -> Iterator[Span]:
    """Raises InvalidRecord."""
    document = require_object(document)
    if _is_batch(document):
        document = {"runs": _patched_runs(document)}
    runs = document["runs"] if isinstance(document.get("runs"), list) else [document]
    for index, run in enumerate(runs):
        pointer = f"/runs/{index}" if runs is document.get("runs") else ""
        yield from _spans(require_object(run, pointer=pointer), "", "", 0, pointer)


Gathered = store_gatherer(read_spans)


def _is_batch(value: Any) -> bool:
    """What the client sends: {"post": [runs as they begin], "patch": [what they ended with]}."""
    if (
        not isinstance(value, dict)
        or not value.keys() & {"post", "patch"}
        or value.keys() - {"post", "patch"}
    ):
        return False
    runs = [*(value.get("post") or ()), *(value.get("patch") or ())]
    return bool(runs) and any(map(_is_run, runs))


def _patched_runs(batch: dict[str, Any]) -> list[Any]:
    """Each run with the fields that it ended with; empty ones leave those it began with."""
    runs: dict[Any, Any] = {}
    for run in [*(batch.get("post") or ()), *(batch.get("patch") or ())]:
        if not isinstance(run, dict):
            raise InvalidRecord("a run is an object.", pointer="/post")
        order = run.get(
            "dotted_order"
        )  # ends with the run's own id, which is all that a patch may have of it
        key = first_of(run.get("id"), order[-_ID_LENGTH:] if isinstance(order, str) else None)
        if not isinstance(key, str):
            raise InvalidRecord("a run has an id or a dotted_order.", pointer="/post")
        ended = {name: value for name, value in run.items() if value not in (None, "", [], {})}
        runs[key] = runs.get(key, {}) | ended
    return list(runs.values())


def _is_run(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("run_type"), str)
        and ("inputs" in value or "id" in value)
    )


def _spans(run: dict[str, Any], trace: str, parent: str, depth: int, pointer: str) -> Iterator[Span]:
    identity = first_of(run.get("id"), run.get("run_id"))
    if identity is None or depth > _DEEPEST:
        raise InvalidRecord(f"a run has an id, and stands at most {_DEEPEST} levels deep.", pointer=pointer)
    order = run.get("dotted_order")
    root = order.partition(".")[0][-36:] if isinstance(order, str) and len(order) >= 36 else None
    trace = trace or str(first_of(run.get("trace_id"), root, run.get("parent_run_id"), identity))
    yield _run(run, str(identity), trace, str(first_of(run.get("parent_run_id"), parent) or ""))
    children = run.get("child_runs")
    for index, child in enumerate(children if isinstance(children, list) else ()):
        if isinstance(child, dict):
            yield from _spans(child, trace, str(identity), depth + 1, f"{pointer}/child_runs/{index}")


def _run(run: dict[str, Any], identity: str, trace: str, parent: str) -> Span:
    extra = as_object(run.get("extra"))
    metadata = as_object(extra.get("metadata"))
    kind = KINDS.get(str(run.get("run_type")).lower(), "chain")
    outputs = as_object(run.get("outputs"))
    facts = {}
    if not parent:
        feedback = {name: _score(value) for name, value in as_object(run.get("feedback_stats")).items()}
        facts = outcome_facts(feedback, metadata, run) | ({"agent": run["name"]} if run.get("name") else {})
    return observation_span(
        run,
        trace=trace,
        id=identity,
        parent=parent,
        kind=kind,
        given=run.get("inputs"),
        gave=first_of(run.get("outputs"), run.get("error") if kind == "tool" else None),
        start=run.get("start_time"),
        end=run.get("end_time"),
        known=_KNOWN,
        is_error=bool(run.get("error")),
        facts=facts,
        name=run.get("name"),
        model=_model(extra, metadata, outputs) if kind == "model" else None,
        usage=_usage(run, outputs) if kind == "model" else None,
        cost=run.get("total_cost") if kind == "model" else None,
        node=metadata.get("langgraph_node"),
        conversation=first_of(
            *(metadata.get(key) for key in ("thread_id", "session_id", "conversation_id")),
            run.get("thread_id"),
        ),
        call_id=first_of(extra.get("tool_call_id"), as_object(outputs.get("output")).get("tool_call_id")),
    )


def _score(value: Any) -> Any:
    """Of a key's statistics the average."""
    return value.get("avg") if isinstance(value, dict) and value.get("avg") is not None else value


def _model(extra: dict[str, Any], metadata: dict[str, Any], outputs: dict[str, Any]) -> str:
    message = _message(outputs)
    holders = (
        as_object(message.get("response_metadata")),
        as_object(extra.get("invocation_params")),
        as_object(outputs.get("llm_output")),
        outputs,
    )
    found = first_of(
        metadata.get("ls_model_name"), *(holder.get(key) for holder in holders for key in _MODELS)
    )
    return found if isinstance(found, str) else ""


def _usage(run: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    message = _message(outputs)
    named = ("prompt_tokens", "completion_tokens", "total_tokens")
    return as_object(
        first_of(
            message.get("usage_metadata"),
            outputs.get("usage_metadata"),
            outputs.get("usage"),
            as_object(outputs.get("llm_output")).get("token_usage"),
            run.get("usage_metadata"),
            {key: run[key] for key in named if run.get(key)},
        )
    )


def _message(outputs: dict[str, Any]) -> dict[str, Any]:
    """The message that a model of LangChain answered with."""
    held = outputs.get("generations", outputs.get("output"))
    while isinstance(held, list) and held:
        held = held[0]
    held = as_object(held)
    message = as_object(held.get("message", held))
    return as_object(message.get("kwargs")) or message
