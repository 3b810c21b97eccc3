"""Sessions of further coding agents, in the shape of files that their users published, shortened."""

from typing import Any

_USAGE = {"inputOther": 267, "output": 42, "inputCacheRead": 24064, "inputCacheCreation": 0}


def _looped(time: int, **event: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": event, "time": time}


KIMI: list[dict[str, Any]] = [
    {"type": "metadata", "protocol_version": "1.4", "created_at": 1},
    {"type": "config.update", "profileName": "agent", "systemPrompt": "You are Kimi.", "time": 2},
    {
        "type": "turn.prompt",
        "input": [{"type": "text", "text": "List."}],
        "origin": {"kind": "user"},
        "time": 3,
    },
    {
        "type": "context.append_message",
        "message": {
            "role": "user",
            "content": [{"type": "text", "text": "List."}],
            "toolCalls": [],
            "origin": {"kind": "user"},
        },
        "time": 4,
    },
    {"type": "llm.request", "kind": "loop", "model": "kimi-k2.7-code", "turnStep": "0.1", "time": 5},
    _looped(6, type="step.begin", uuid="s1", turnId="0", step=1),
    _looped(7, type="content.part", uuid="p1", stepUuid="s1", part={"type": "think", "think": "I need ls."}),
    _looped(
        8,
        type="tool.call",
        uuid="Bash_0",
        stepUuid="s1",
        toolCallId="Bash_0",
        name="Bash",
        args={"command": "ls"},
    ),
    _looped(9, type="tool.result", parentUuid="Bash_0", toolCallId="Bash_0", result={"output": "a.py"}),
    _looped(10, type="step.end", uuid="s1", turnId="0", step=1, usage=_USAGE, finishReason="tool_use"),
    {
        "type": "context.append_message",
        "message": {
            "role": "user",
            "content": [{"type": "text", "text": "<system-reminder>Plan.</system-reminder>"}],
            "toolCalls": [],
            "origin": {"kind": "injection", "variant": "plan_mode"},
        },
        "time": 11,
    },
    _looped(12, type="content.part", uuid="p2", stepUuid="s2", part={"type": "text", "text": "One file."}),
]
KIMI_CLI: list[dict[str, Any]] = [
    {"type": "metadata", "protocol_version": "1.3"},
    *(
        {"timestamp": 1704067200.0 + place, "message": {"type": kind, "payload": payload}}
        for place, (kind, payload) in enumerate(
            (
                ("TurnBegin", {"user_input": [{"type": "text", "text": "Read the file"}]}),
                ("StepBegin", {"n": 1}),
                ("ContentPart", {"type": "think", "think": "Let me plan."}),
                (
                    "ToolCall",
                    {"type": "function", "id": "t1", "function": {"name": "Glob", "arguments": '{"pat'}},
                ),
                ("ToolCallPart", {"arguments_part": 'tern": "*.go"}'}),
                ("StatusUpdate", {"context_tokens": 8000, "token_usage": {"output": 50, "input_other": 10}}),
                (
                    "ToolResult",
                    {"tool_call_id": "t1", "return_value": {"is_error": False, "output": "main.go"}},
                ),
                ("StepBegin", {"n": 2}),
                ("ContentPart", {"type": "text", "text": "Found"}),
                ("ContentPart", {"type": "text", "text": " it."}),
                ("TurnEnd", {}),
            )
        )
    ),
]


def _antigravity(index: int, source: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "step_index": index, "source": source, "type": kind, "status": "DONE", "created_at": "2026-06-26T21:16:16Z",
    } | more  # fmt: skip


ANTIGRAVITY: list[dict[str, Any]] = [
    _antigravity(
        0, "USER_EXPLICIT", "USER_INPUT",
        content="<USER_REQUEST>\nList the files.\n</USER_REQUEST>\n<SETTINGS>A model.</SETTINGS>",
    ),
    _antigravity(1, "SYSTEM", "CONVERSATION_HISTORY"),
    _antigravity(
        2, "MODEL", "PLANNER_RESPONSE", thinking="Listing.",
        tool_calls=[{"name": "view_file", "args": {"AbsolutePath": '"notes/a.txt"'}}],
    ),
    _antigravity(
        3, "MODEL", "PLANNER_RESPONSE", content="And the folder.",
        tool_calls=[{"name": "list_dir", "args": {"DirectoryPath": '"/tmp"', "Depth": "2"}}],
    ),
    _antigravity(4, "MODEL", "LIST_DIRECTORY", content='{"name":"a.txt"}'),
    _antigravity(5, "MODEL", "VIEW_FILE", content="1: hello"),
    _antigravity(6, "SYSTEM", "CHECKPOINT", content="# Resuming from a compaction"),
    _antigravity(7, "MODEL", "PLANNER_RESPONSE", content="It has a.txt."),
]  # fmt: skip
GROK: list[dict[str, Any]] = [
    {"type": "system", "content": "You are Grok 4.5."},
    {
        "type": "user",
        "content": [{"type": "text", "text": "<user_info>macos</user_info>"}],
        "synthetic_reason": "environment_context",
    },
    {"type": "user", "content": [{"type": "text", "text": "Read hello.py."}], "prompt_index": 0},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "I should read it."}],
        "encrypted_content": "<opaque>",
        "status": "completed",
    },
    {
        "type": "assistant",
        "content": "I'll read it.",
        "tool_calls": [{"id": "call-1", "name": "read_file", "arguments": '{"target_file":"src/hello.py"}'}],
        "model_id": "grok-4.5",
        "reasoning_effort": "high",
    },
    {"type": "tool_result", "tool_call_id": "call-1", "content": 'print("hello")\n'},
    {
        "type": "backend_tool_call",
        "kind": {
            "tool_type": "web_search",
            "action": {"type": "search", "query": "python print"},
            "id": "ws_1",
            "status": "completed",
        },
    },
    {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "I can answer."}]},
    {"type": "user", "content": [{"type": "text", "text": "Well?"}], "prompt_index": 1},
    {"type": "assistant", "content": "It prints hello.", "tool_calls": [], "model_id": "grok-4.5"},
]
_DROID = {"session_id": "d1", "timestamp": "2025-12-26T02:00:00.000Z"}
DROID: list[dict[str, Any]] = [
    {"type": "system", "model": "droid-model", "cwd": "shop", "id": "sys1"} | _DROID,
    {"type": "message", "role": "user", "text": "Count.", "id": "m1"} | _DROID,
    {"type": "message", "role": "assistant", "text": "Ok", "id": "m2"} | _DROID,
    {
        "type": "tool_call",
        "toolCallId": "c1",
        "toolName": "Shell",
        "parameters": {"command": "wc"},
        "id": "tc1",
    }
    | _DROID,
    {"type": "tool_result", "toolCallId": "c1", "value": {"stdout": "3\n", "exitCode": 0}, "id": "tr1"}
    | _DROID,
    {
        "type": "completion",
        "finalText": "Three.",
        "id": "end",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    | _DROID,
]
FURTHER_AGENTS: dict[str, list[dict[str, Any]]] = {
    "kimi": KIMI,
    "antigravity": ANTIGRAVITY,
    "grok": GROK,
    "droid": DROID,
}
