"""One conversation as spans of OpenTelemetry, by each instrumentation in the shape of its writer: a question, a call of
a tool and its result, an answer. They are OTLP JSON where their exporter is OTLP's."""

import base64
import json
from typing import Any

from tests.trajectories import test_otel as otlp

Attributes = dict[str, Any]
TOOL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"order": 7}'}}
ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is it?"},
]
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [TOOL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "in Ulm"}
SAID = {"role": "assistant", "content": "In Ulm."}
LATER = [*ASKED, CALLED, TOLD]
TRACE = "5f1b7a90c2d84e63a1f0b9d8e7c6a5b4"


def response(message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "gpt-4o-2024", "choices": [choice], "usage": usage}


def exported(*spans: Attributes, events: dict[int, Any] | None = None) -> dict[str, Any]:
    """Spans as OTLP: the first is the root of the others. events: by the number of their span."""
    return otlp.traced(
        *(
            otlp.span(
                number,
                given,
                parent=0 if number == 1 else 1,
                events=(events or {}).get(number, ()),
                endTimeUnixNano=str(1000 + number),
            )
            for number, given in enumerate(spans, 1)
        )
    )


def _openinference_messages(name: str, messages: list[dict[str, Any]]) -> Attributes:
    found: Attributes = {}
    for number, message in enumerate(messages):
        at = f"llm.{name}_messages.{number}.message"
        found[f"{at}.role"] = message["role"]
        if message["content"] is not None:
            found[f"{at}.content"] = message["content"]
        if "tool_call_id" in message:
            found[f"{at}.tool_call_id"] = message["tool_call_id"]
        for place, call in enumerate(message.get("tool_calls", ())):
            where = f"{at}.tool_calls.{place}.tool_call"
            found[f"{where}.id"] = call["id"]
            found[f"{where}.function.name"] = call["function"]["name"]
            found[f"{where}.function.arguments"] = call["function"]["arguments"]
    return found


def _openinference_call(asked: list[dict[str, Any]], said: dict[str, Any]) -> Attributes:
    counts = {"llm.token_count.prompt": 12, "llm.token_count.completion": 3, "llm.token_count.total": 15}
    about = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    return (
        about | counts | _openinference_messages("input", asked) | _openinference_messages("output", [said])
    )


OPENINFERENCE_SPANS: list[Attributes] = [
    {
        "openinference.span.kind": "AGENT",
        "agent.name": "desk",
        "input.value": "Where is it?",
        "session.id": "s1",
    },
    _openinference_call(ASKED, CALLED),
    {
        "openinference.span.kind": "TOOL",
        "tool.name": "look",
        "input.value": '{"order": 7}',
        "output.value": "in Ulm",
    },
    _openinference_call(LATER, SAID),
]
OPENINFERENCE = exported(*OPENINFERENCE_SPANS)


def _nested(given: Attributes) -> Attributes:
    """As Phoenix keeps attributes: dotted names are objects, and numbers lists."""
    tree: Attributes = {}
    for key, value in given.items():
        node = tree
        *above, last = key.split(".")
        for name in above:
            node = node.setdefault(name, {})
        node[last] = value

    def listed(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        if node and all(name.isdecimal() for name in node):
            return [listed(node[name]) for name in sorted(node, key=int)]
        return {name: listed(item) for name, item in node.items()}

    found: Attributes = listed(tree)
    return found


def _phoenix(number: int, given: Attributes) -> dict[str, Any]:
    return {
        "name": f"span {number}",
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{number:016x}", "trace_state": "[]"},
        "parent_id": None if number == 1 else f"0x{1:016x}",
        "span_kind": given["openinference.span.kind"],
        "start_time": f"2026-05-08T21:46:{number:02}.480777+00:00",
        "end_time": f"2026-05-08T21:46:{number:02}.980777+00:00",
        "status_code": "OK",
        "attributes": _nested(given),
        "events": [],
    }


PHOENIX = [_phoenix(number, given) for number, given in enumerate(OPENINFERENCE_SPANS, 1)]
PHOENIX_ROWS = [  # of a data frame
    {f"context.{key}": value for key, value in span["context"].items() if key != "trace_state"}
    | {key: value for key, value in span.items() if key not in ("context", "attributes")}
    | {
        f"attributes.{key}": value
        for key, value in given.items()
        if not key.startswith(("llm.input_messages", "llm.output_messages"))
    }
    | {
        f"attributes.llm.{name}_messages": [
            {f"message.{key}": item for key, item in message["message"].items()}
            for message in span["attributes"]["llm"][f"{name}_messages"]
        ]
        for name in ("input", "output")
        if f"{name}_messages" in span["attributes"].get("llm", {})
    }
    for span, given in zip(PHOENIX, OPENINFERENCE_SPANS, strict=True)
]
NODE = [
    {
        "name": span["name"],
        "spanContext": {"traceId": TRACE, "spanId": span["context"]["span_id"][2:], "traceFlags": 1},
        "parentSpanContext": None if number == 1 else {"traceId": TRACE, "spanId": f"{1:016x}"},
        "attributes": given,
        "status": {"code": 0},
        "startTime": [1770131992 + number, 242000000],
        "endTime": [1770131992 + number, 742000000],
        "events": [],
    }
    for number, (span, given) in enumerate(zip(PHOENIX, OPENINFERENCE_SPANS, strict=True), 1)
]
JAEGER = {
    "data": [
        {
            "traceID": TRACE,
            "processes": {"p1": {"serviceName": "desk"}},
            "spans": [
                {
                    "traceID": TRACE,
                    "spanID": f"{number:016x}",
                    "operationName": f"span {number}",
                    "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": f"{1:016x}"}]
                    if number > 1
                    else [],
                    "startTime": 1770131992000000 + number,
                    "duration": 1,
                    "processID": "p1",
                    "tags": [{"key": key, "type": "string", "value": value} for key, value in given.items()],
                    "logs": [],
                }
                for number, given in enumerate(OPENINFERENCE_SPANS, 1)
            ],
        }
    ]
}

_VERCEL_ASKED = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
]
_VERCEL_LATER = [
    *_VERCEL_ASKED,
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "Hm."},
            {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {"order": 7}},
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "look",
                "output": {"type": "text", "value": "in Ulm"},
            }
        ],
    },
]


def _vercel(operation: str, **given: Any) -> Attributes:
    about = {"operation.name": operation, "ai.operationId": operation, "ai.model.id": "gpt-4o"}
    return (
        about
        | {"ai.telemetry.functionId": "desk"}
        | {key.replace("_", "."): item for key, item in given.items()}
    )


def _vercel_call(asked: list[Any], **said: Any) -> Attributes:
    usage = {"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3}
    return _vercel("ai.streamText.doStream", ai_prompt_messages=json.dumps(asked), **said) | usage


VERCEL = exported(
    _vercel("ai.streamText", ai_prompt=json.dumps({"prompt": "Where is it?"}), ai_response_text="In Ulm."),
    _vercel_call(
        _VERCEL_ASKED,
        ai_response_reasoning="Hm.",
        ai_response_toolCalls=json.dumps([{"toolCallId": "c1", "toolName": "look", "input": {"order": 7}}]),
    ),
    _vercel(
        "ai.toolCall",
        ai_toolCall_name="look",
        ai_toolCall_id="c1",
        ai_toolCall_args='{"order": 7}',
        ai_toolCall_result='"in Ulm"',
    ),
    _vercel_call(_VERCEL_LATER, ai_response_text="In Ulm."),
)


def _traceloop_call(asked: list[dict[str, Any]], said: dict[str, Any]) -> Attributes:
    found: Attributes = {"llm.request.type": "chat", "gen_ai.request.model": "gpt-4o"}
    for name, messages in (("prompt", asked), ("completion", [said])):
        for number, message in enumerate(messages):
            at = f"gen_ai.{name}.{number}"
            found |= {
                f"{at}.{key}": message[key]
                for key in ("role", "content", "tool_call_id")
                if message.get(key) is not None
            }
            for place, call in enumerate(message.get("tool_calls", ())):
                found[f"{at}.tool_calls.{place}.id"] = call["id"]
                found |= {f"{at}.tool_calls.{place}.{key}": item for key, item in call["function"].items()}
    return found | {"gen_ai.usage.prompt_tokens": 12, "gen_ai.usage.completion_tokens": 3}


_LANGCHAIN_RESULT = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "ToolMessage"],
    "kwargs": {"content": "in Ulm", "type": "tool", "name": "look", "tool_call_id": "c1"},
}
TRACELOOP = exported(
    {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.name": "desk",
        "traceloop.entity.input": json.dumps(
            {"inputs": {"question": "Where is it?"}, "tags": [], "kwargs": {}}
        ),
    },
    _traceloop_call(ASKED, CALLED),
    {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "look",
        "traceloop.entity.input": json.dumps(
            {"input_str": "{'order': 7}", "tags": [], "inputs": {"order": 7}}
        ),
        "traceloop.entity.output": json.dumps({"output": _LANGCHAIN_RESULT, "kwargs": {}}),
    },
    _traceloop_call(LATER, SAID),
)

_EVENTS = [
    {
        "event.name": "gen_ai.system.message",
        "role": "system",
        "content": "Be kind.",
        "gen_ai.message.index": 0,
    },
    {
        "event.name": "gen_ai.user.message",
        "role": "user",
        "content": "Where is it?",
        "gen_ai.message.index": 0,
    },
    {
        "event.name": "gen_ai.assistant.message",
        "role": "assistant",
        "tool_calls": [TOOL],
        "gen_ai.message.index": 1,
    },
    {
        "event.name": "gen_ai.tool.message",
        "role": "tool",
        "id": "c1",
        "name": "look",
        "content": "in Ulm",
        "gen_ai.message.index": 2,
    },
    {
        "event.name": "gen_ai.assistant.message",
        "role": "assistant",
        "content": "In Ulm.",
        "gen_ai.message.index": 3,
    },
]


def _pydantic_call(asked: list[Any], said: dict[str, Any]) -> Attributes:
    choice = {"event.name": "gen_ai.choice", "index": 0, "message": said}
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"}
    return about | {"events": json.dumps([*asked, choice]), "gen_ai.usage.input_tokens": 12}


PYDANTIC_EVENTS = exported(
    {"agent_name": "desk", "all_messages_events": json.dumps(_EVENTS), "final_result": "In Ulm."},
    _pydantic_call(_EVENTS[:2], {"role": "assistant", "tool_calls": [TOOL]}),
    {
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "tool_arguments": '{"order": 7}',
        "tool_response": "in Ulm",
    },
    _pydantic_call(_EVENTS[:4], {"role": "assistant", "content": "In Ulm."}),
)
PYDANTIC_AGENT = exported(
    {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be kind."}]),
        "pydantic_ai.all_messages": json.dumps(
            [
                {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]},
                {
                    "role": "assistant",
                    "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {"order": 7}}],
                },
                {
                    "role": "user",
                    "parts": [{"type": "tool_call_response", "id": "c1", "name": "look", "result": "in Ulm"}],
                },
                {"role": "assistant", "parts": [{"type": "text", "content": "In Ulm."}]},
            ]
        ),
        "final_result": "In Ulm.",
    }
)

_BEDROCK_CALL = [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"order": 7}}}]
_BEDROCK_RESULT = [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "in Ulm"}]}}]
_ASKED_EVENTS = [
    ("gen_ai.system.message", {"content": "Be kind."}),
    ("gen_ai.user.message", {"content": json.dumps([{"text": "Where is it?"}])}),
]
STRANDS = exported(
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
    {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 12},
    {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"},
    {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o"},
    events={
        2: [*_ASKED_EVENTS, ("gen_ai.choice", {"message": json.dumps(_BEDROCK_CALL)})],
        3: [("gen_ai.choice", {"message": json.dumps([{"text": "in Ulm"}]), "id": "c1"})],
        4: [
            *_ASKED_EVENTS,
            ("gen_ai.assistant.message", {"content": json.dumps(_BEDROCK_CALL)}),
            ("gen_ai.tool.message", {"content": json.dumps(_BEDROCK_RESULT)}),
            ("gen_ai.choice", {"message": json.dumps([{"text": "In Ulm."}]), "finish_reason": "end_turn"}),
        ],
    },
)


def _adk_call(contents: list[Any], said: dict[str, Any]) -> Attributes:
    request = {"model": "gpt-4o", "config": {"system_instruction": "Be kind."}, "contents": contents}
    return {
        "gen_ai.system": "gcp.vertex.agent",
        "gen_ai.request.model": "gpt-4o",
        "gcp.vertex.agent.session_id": "s1",
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps({"content": said}),
    }


_ADK_ASKED = {"parts": [{"text": "Where is it?"}], "role": "user"}
_ADK_CALLED = {
    "parts": [{"function_call": {"id": "c1", "args": {"order": 7}, "name": "look"}}],
    "role": "model",
}
_ADK_TOLD = {
    "parts": [{"function_response": {"id": "c1", "name": "look", "response": "in Ulm"}}],
    "role": "user",
}
ADK = exported(
    {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"},
    _adk_call([_ADK_ASKED], _ADK_CALLED),
    {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "gcp.vertex.agent.tool_call_args": '{"order": 7}',
        "gcp.vertex.agent.tool_response": '"in Ulm"',
        "gcp.vertex.agent.llm_request": "{}",
    },
    _adk_call([_ADK_ASKED, _ADK_CALLED, _ADK_TOLD], {"parts": [{"text": "In Ulm."}], "role": "model"}),
)
LANGFUSE_OTEL = exported(
    {"langfuse.observation.type": "agent", "langfuse.observation.input": "Where is it?"},
    *(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": "gpt-4o",
            "langfuse.observation.input": json.dumps(asked),
            "langfuse.observation.output": json.dumps(said),
            "langfuse.observation.usage_details": json.dumps({"input": 12, "output": 3}),
        }
        for asked, said in ((ASKED, CALLED), (LATER, SAID))
    ),
)
LANGSMITH_OTEL = exported(
    {"langsmith.span.kind": "chain", "gen_ai.prompt": json.dumps({"input": "Where is it?"})},
    *(
        {
            "langsmith.span.kind": "llm",
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.prompt": json.dumps({"messages": asked}),
            "gen_ai.completion": json.dumps(response(said)),
            "gen_ai.usage.input_tokens": 12,
        }
        for asked, said in ((ASKED, CALLED), (LATER, SAID))
    ),
)


def _base64(number: int) -> str:
    return base64.b64encode(number.to_bytes(8, "big")).decode()


def _mlflow(number: int, kind: str, given: Any, gave: Any, **more: Any) -> dict[str, Any]:
    """As version 3 writes it: ids are their bytes in base64, attributes JSON texts."""
    attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": gave} | more
    return {
        "trace_id": "X1t6kMLYTmOh8LnY58altA==",
        "span_id": _base64(number),
        "parent_span_id": "" if number == 1 else _base64(1),
        "name": "look" if kind == "TOOL" else f"span {number}",
        "start_time_unix_nano": 1770131992000000000 + number,
        "end_time_unix_nano": 1770131992000000001 + number,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {key: json.dumps(value) for key, value in attributes.items()},
    }


_MLFLOW_USAGE = {"mlflow.chat.tokenUsage": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}}
MLFLOW = {
    "info": {"trace_id": "tr-1", "state": "OK", "tags": {"mlflow.traceName": "desk"}},
    "data": {
        "spans": [
            _mlflow(1, "AGENT", {"question": "Where is it?"}, "In Ulm."),
            _mlflow(
                2, "CHAT_MODEL", {"model": "gpt-4o", "messages": ASKED}, response(CALLED), **_MLFLOW_USAGE
            ),
            _mlflow(3, "TOOL", {"order": 7}, "in Ulm"),
            _mlflow(4, "CHAT_MODEL", {"model": "gpt-4o", "messages": LATER}, response(SAID), **_MLFLOW_USAGE),
        ]
    },
}
GENAI_PROMPT = exported(
    *(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.prompt": json.dumps(asked),
            "gen_ai.completion": json.dumps(said),
            "gen_ai.usage.input_tokens": 12,
        }
        for asked, said in ((ASKED, CALLED), (LATER, SAID))
    )
)
