"""Conventions in which a span has one attribute for what went in and one for what came out: MLflow, Langfuse and
LangSmith over OpenTelemetry, OpenLLMetry (Traceloop), Google's ADK, Genkit, and Logfire's of OpenAI and Anthropic."""

from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.tracing.call_content import decoded
from apps.trajectories.formats.tracing.span_content import SpanContent, SpanKind, observed, token_counts

KINDS: dict[str, SpanKind] = {
    "llm": "model", "chat_model": "model", "generation": "model", "chat": "model", "completion": "model",
    "tool": "tool", "execute_tool": "tool", "agent": "agent", "chain": "chain", "workflow": "chain", "task": "chain",
    "span": "chain", "event": "chain", "general": "chain", "parser": "chain", "prompt": "chain", "unknown": "chain",
    "embedding": "other", "embeddings": "other", "retriever": "other", "reranker": "other", "guardrail": "other",
    "evaluator": "other", "memory": "other",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Convention:
    """title: of the tool. kind: attribute of what a span is. given, gave: of what went in and came out, the first that
    is there. default: what a span is where nothing says it."""

    title: str
    kind: str
    given: tuple[str, ...]
    gave: tuple[str, ...]
    name: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    usage: tuple[str, ...] = ()
    conversation: tuple[str, ...] = ()
    default: SpanKind = "chain"


_CONVENTIONS = (
    _Convention(
        "Langfuse",
        "langfuse.observation.type",
        ("langfuse.observation.input", "langfuse.trace.input"),
        ("langfuse.observation.output", "langfuse.trace.output"),
        model=("langfuse.observation.model.name",),
        usage=("langfuse.observation.usage_details",),
        conversation=("session.id", "langfuse.session.id"),
    ),
    _Convention(
        "MLflow",
        "mlflow.spanType",
        ("mlflow.spanInputs",),
        ("mlflow.spanOutputs",),
        name=("mlflow.spanFunctionName",),
        model=("mlflow.llm.model", "llm.model_name", "model"),
        usage=("mlflow.chat.tokenUsage",),
        conversation=("mlflow.trace.session",),
    ),
    _Convention(
        "LangSmith",
        "langsmith.span.kind",
        ("gen_ai.prompt", "input.value"),
        ("gen_ai.completion", "output.value"),
        name=("langsmith.trace.name",),
        model=("gen_ai.request.model",),
        usage=("langsmith.usage_metadata",),
        conversation=(
            "langsmith.trace.session_id",
            "langsmith.metadata.session_id",
            "langsmith.metadata.thread_id",
        ),
    ),
    _Convention(
        "OpenLLMetry (Traceloop)",
        "traceloop.span.kind",
        ("traceloop.entity.input",),
        ("traceloop.entity.output",),
        name=("traceloop.entity.name",),
        conversation=("traceloop.association.properties.session_id",),
    ),
    _Convention(
        "Google's Agent Development Kit",
        "gcp.vertex.agent.kind",
        ("gcp.vertex.agent.llm_request",),
        ("gcp.vertex.agent.llm_response",),
        conversation=("gcp.vertex.agent.session_id",),
        default="model",
    ),
    _Convention(
        "Google's Agent Development Kit",
        "gcp.vertex.agent.kind",
        ("gcp.vertex.agent.tool_call_args",),
        ("gcp.vertex.agent.tool_response",),
        name=("gen_ai.tool.name",),
        default="tool",
    ),
    _Convention(
        "Genkit",
        "genkit:metadata:subtype",
        ("genkit:input",),
        ("genkit:output",),
        name=("genkit:name",),
    ),
    _Convention(
        "GenAI before its events",
        "gen_ai.span.kind",
        ("gen_ai.prompt",),
        ("gen_ai.completion",),
        model=("gen_ai.request.model",),
        default="model",
    ),
    _Convention(
        "Logfire",
        "logfire.kind",
        ("request_data",),
        ("response_data",),
        model=("gen_ai.request.model",),
        default="model",
    ),
)


def content(name: str, given: dict[str, Any]) -> SpanContent | None:
    """name: of the span. None where no such convention has written it."""
    found = None
    for convention in _CONVENTIONS:
        if one := _read(convention, name, given):
            found = one if found is None else found.completed(one)
    return found


def _read(convention: _Convention, name: str, given: dict[str, Any]) -> SpanContent | None:
    asked, gave = _first(given, convention.given), _first(given, convention.gave)
    kind = decoded(given.get(convention.kind))
    if kind is None and (convention.title == "LangSmith" or (asked is None and gave is None)):
        return None
    known = KINDS.get(str(kind).lower(), convention.default) if kind is not None else convention.default
    usage = decoded(_first(given, convention.usage))
    model = decoded(_first(given, convention.model))
    conversation = _first(given, convention.conversation)
    own = _first(given, convention.name)
    return observed(
        known,
        _unwrapped(decoded(asked), "inputs"),
        _unwrapped(decoded(gave), "outputs"),
        name=str(decoded(own) or name),
        call_id=_call_id(gave, given),
        model=model if isinstance(model, str) else "",
        usage=token_counts(usage),
        conversation=str(conversation) if conversation is not None else "",
    )


def _first(given: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) not in (None, "", "{}", "null")), None)


def _call_id(gave: Any, given: dict[str, Any]) -> Any:
    value = decoded(gave)
    inner = value.get("tool_call_id") if isinstance(value, dict) else None
    return inner or given.get("gen_ai.tool.call.id")


def _unwrapped(value: Any, key: str) -> Any:
    """OpenLLMetry writes {"inputs": ..., "tags", "metadata"} of LangChain, and {"args", "kwargs"} of functions."""
    for name in (key, key.removesuffix("s")):
        if isinstance(value, dict) and name in value and set(value) & {"tags", "metadata", "kwargs"}:
            return value[name]
    if isinstance(value, dict) and set(value) == {"args", "kwargs"}:
        return value["kwargs"] or value["args"]
    return value
