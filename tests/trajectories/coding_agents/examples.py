"""A small document of each format of a coding agent, for tests of all formats."""

import json
from typing import Any

from tests.trajectories.coding_agents.further_examples import FURTHER_AGENTS

CLAUDE_CODE: list[dict[str, Any]] = [
    {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "cwd": "/w",
        "version": "2.0.76",
        "message": {"role": "user", "content": "List the files."},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "sessionId": "s1",
        "message": {
            "id": "m1",
            "role": "assistant",
            "model": "claude-opus-4-5",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 9},
        },
    },
    {
        "type": "user",
        "uuid": "u3",
        "parentUuid": "u2",
        "sessionId": "s1",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}],
        },
        "toolUseResult": {"stdout": "a.py"},
    },
    {
        "type": "assistant",
        "uuid": "u4",
        "sessionId": "s1",
        "message": {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "One file."}]},
    },
]


def codex_event(kind: str, **payload: Any) -> dict[str, Any]:
    """A line of a rollout, as `RolloutLine` of Codex writes it."""
    return {"timestamp": "2026-08-01T10:00:00.000Z", "type": kind, "payload": payload}


def _tokens(total: int, last: int) -> dict[str, Any]:
    counts = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": last}}
    return codex_event("event_msg", type="token_count", info=counts)


def _text(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_event("response_item", type="message", role=role, content=[{"type": kind, "text": text}])


CODEX: list[dict[str, Any]] = [
    codex_event("session_meta", id="r1", cwd="/w", cli_version="0.146.1", originator="codex_cli_rs"),
    codex_event("turn_context", model="gpt-5.1-codex", cwd="/w"),
    _text("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
    _text("user", "List the files."),
    codex_event("event_msg", type="user_message", message="List the files."),
    codex_event("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "Hm."}]),
    codex_event(
        "response_item", type="function_call", name="shell", call_id="c1", arguments='{"command": ["ls"]}'
    ),
    _tokens(5, 5),
    _tokens(5, 5),
    codex_event("response_item", type="function_call_output", call_id="c1", output="a.py"),
    _text("assistant", "One file."),
    codex_event("event_msg", type="agent_message", message="One file."),
    _tokens(12, 7),
]
CODEX_EXEC: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "Hm."}},
    {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "ls"}},
    {
        "type": "item.completed",
        "item": {
            "id": "item_1",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "a.py",
            "exit_code": 0,
            "status": "completed",
        },
    },
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "One file."}},
    {"type": "turn.completed", "usage": {"input_tokens": 12, "output_tokens": 3}},
]
OPENHANDS: list[dict[str, Any]] = [
    {
        "id": 0,
        "source": "agent",
        "message": "You help.",
        "action": "system",
        "args": {"content": "You help."},
    },
    {
        "id": 1,
        "source": "user",
        "message": "List.",
        "action": "message",
        "args": {"content": "List the files."},
    },
    {
        "id": 2,
        "source": "environment",
        "observation": "agent_state_changed",
        "content": "",
        "extras": {"a": "b"},
    },
    {
        "id": 3,
        "source": "agent",
        "action": "run",
        "args": {"command": "ls", "thought": "I look.", "blocking": False},
        "tool_call_metadata": {
            "function_name": "execute_bash",
            "tool_call_id": "toolu_01",
            "model_response": {
                "id": "gen-1",
                "model": "m",
                "choices": [
                    {
                        "message": {
                            "content": "I look.",
                            "tool_calls": [
                                {
                                    "id": "toolu_01",
                                    "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'},
                                }
                            ],
                        }
                    }
                ],
                "usage": {"prompt_tokens": 7, "completion_tokens": 2},
            },
        },
    },
    {
        "id": 4,
        "source": "agent",
        "cause": 3,
        "observation": "run",
        "content": "a.py",
        "extras": {"exit_code": 0},
    },
    {
        "id": 5,
        "source": "agent",
        "action": "finish",
        "args": {"final_thought": "One file.", "thought": "Done."},
    },
]
OPENHANDS_OUTPUT: dict[str, Any] = {
    "instance_id": "owner__repo-1",
    "instruction": "List the files.",
    "history": OPENHANDS[1:],
    "test_result": {"git_patch": "diff", "report": {"resolved": True}},
    "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "m"}},
    "metrics": {
        "accumulated_cost": 0.5,
        "accumulated_token_usage": {"prompt_tokens": 70, "completion_tokens": 8},
    },
}
GEMINI_CLI: dict[str, Any] = {
    "sessionId": "g1",
    "projectHash": "abc",
    "startTime": "2026-01-01T10:00:00.000Z",
    "lastUpdated": "2026-01-01T10:01:00.000Z",
    "messages": [
        {"id": "1", "timestamp": "t1", "type": "user", "content": [{"text": "List the files."}]},
        {
            "id": "2",
            "timestamp": "t2",
            "type": "gemini",
            "content": "",
            "thoughts": [{"subject": "Plan", "description": "Hm.", "timestamp": "t2"}],
            "toolCalls": [
                {
                    "id": "c1",
                    "name": "run_shell_command",
                    "args": {"command": "ls"},
                    "result": [{"functionResponse": {"id": "c1", "response": {"output": "a.py"}}}],
                    "status": "success",
                }
            ],
            "tokens": {"input": 5, "output": 2, "total": 7},
            "model": "gemini-2.5-pro",
        },
        {
            "id": "3",
            "timestamp": "t3",
            "type": "gemini",
            "content": "One file.",
            "tokens": {"input": 9, "output": 3},
        },
    ],
}
OPENCODE: dict[str, Any] = {
    "info": {"id": "ses_1", "title": "Files", "directory": "/w", "version": "1.0.1"},
    "messages": [
        {
            "info": {"id": "msg_1", "sessionID": "ses_1", "role": "user"},
            "parts": [{"id": "prt_1", "type": "text", "text": "List the files."}],
        },
        {
            "info": {
                "id": "msg_2",
                "sessionID": "ses_1",
                "role": "assistant",
                "modelID": "claude-sonnet-4-5",
                "providerID": "anthropic",
                "cost": 0.25,
                "tokens": {"input": 5, "output": 2, "reasoning": 0, "cache": {"read": 3, "write": 1}},
            },
            "parts": [
                {"id": "prt_2", "type": "step-start"},
                {"id": "prt_3", "type": "reasoning", "text": "Hm."},
                {
                    "id": "prt_4",
                    "type": "tool",
                    "callID": "c1",
                    "tool": "bash",
                    "state": {
                        "status": "completed",
                        "input": {"command": "ls"},
                        "output": "a.py",
                        "title": "ls",
                    },
                },
                {"id": "prt_5", "type": "text", "text": "One file."},
            ],
        },
    ],
}
CLINE: list[dict[str, Any]] = [
    {
        "role": "user",
        "ts": 1,
        "content": [
            {"type": "text", "text": "<task>\nList the files.\n</task>"},
            {"type": "text", "text": "<environment_details>\n# Time\nnoon\n</environment_details>"},
        ],
    },
    {
        "role": "assistant",
        "ts": 2,
        "content": [{"type": "text", "text": "I look.\n\n<list_files>\n<path>src</path>\n</list_files>"}],
        "modelInfo": {"modelId": "claude-sonnet-4-5", "providerId": "anthropic"},
        "metrics": {"tokens": 7, "cost": 0.25},
    },
    {"role": "user", "ts": 3, "content": [{"type": "text", "text": "[list_files for 'src'] Result:\na.py"}]},
    {
        "role": "assistant",
        "content": "<attempt_completion>\n<result>One file.</result>\n</attempt_completion>",
    },
]
SWE_ROW: dict[str, Any] = {
    "instance_id": "owner__repo.abc.lm_1",
    "messages": [
        {"role": "system", "content": "You fix bugs."},
        {"role": "user", "content": "Fix it."},
        {
            "role": "assistant",
            "content": "I look.\n\n<function=bash>\n<parameter=command>ls src</parameter>\n</function>",
        },
        {"role": "user", "content": "OBSERVATION:\na.py"},
        {"role": "assistant", "content": "Fixed."},
    ],
    "resolved": True,
    "model": "claude-3-7-sonnet",
    "traj_id": "owner__repo.abc.lm_1.x1",
    "patch": "diff",
}
AIDER = {
    "aider": {"started": "2025-12-03 14:43:45", "model": "openai/small"},
    "messages": [
        {"role": "tool", "content": "Aider v0.86.1"},
        {"role": "user", "content": "Write a file."},
        {"role": "assistant", "content": "Here it is.", "usage": {"cost": 0.25}},
    ],
}
CURSOR: list[dict[str, Any]] = [
    {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>list it</user_query>"}]}},
    {
        "role": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "I list the files."},
                {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}},
            ]
        },
    },
    {"type": "turn_ended", "status": "success"},
]
SPECSTORY_SESSION = {
    "specstory": {
        "agent": "Claude Code",
        "id": "e317d7b9",
        "started": "2026-01-16 16:48:38Z",
        "title": "A session",
    },
    "messages": [
        {"role": "user", "timestamp": "2026-01-16 16:48:38Z", "content": "Look."},
        {"role": "assistant", "model": "claude-opus-4-5", "content": None, "reasoning_content": "I look."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"type": "function", "function": {"name": "Glob", "arguments": {"type": "search"}}}
            ],
        },
        {"role": "tool", "content": "a.go"},
        {"role": "assistant", "content": "Done."},
    ],
}
OPENCLAW: list[dict[str, Any]] = [
    {
        "type": "message.in",
        "channel": "telegram",
        "from": "telegram:1",
        "content": "Who am I?",
        "timestamp": 1,
    },
    {"type": "agent.start", "sessionKey": "agent:main:main", "agentId": "main", "prompt": "Who am I?"},
    {
        "type": "tool.start",
        "toolName": "exec",
        "params": {"command": "whoami"},
        "sessionKey": "agent:main:main",
        "agentId": "main",
    },
    {
        "type": "tool.end",
        "toolName": "exec",
        "durationMs": 291,
        "success": True,
        "sessionKey": "agent:main:main",
    },
    {"type": "message.out", "channel": "telegram", "to": "telegram:1", "content": "You are root."},
]
COPILOT: list[dict[str, Any]] = [
    {"ts": 1, "dur": 0, "sid": "s1", "type": "user_message", "name": "user_message", "spanId": "u1", "status": "ok",
     "attrs": {"content": "Read the config."}},
    {"ts": 2, "dur": 45, "sid": "s1", "type": "agent_response", "name": "agent_response", "spanId": "a1",
     "status": "ok", "attrs": {"response": json.dumps([{"role": "assistant", "parts": [
         {"type": "text", "content": "I read it."},
         {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": '{"path": "config.py"}'}]}])}},
    {"ts": 3, "dur": 57, "sid": "s1", "type": "tool_call", "name": "read_file", "spanId": "c1", "status": "ok",
     "attrs": {"args": '{"path": "config.py"}', "result": "DEBUG = True"}},
    {"ts": 4, "dur": 20, "sid": "s1", "type": "tool_call", "name": "run", "spanId": "c2", "status": "ok",
     "attrs": {"args": {"command": "pytest"}, "result": "5 passed"}},
]  # fmt: skip


def _copilot(number: int, kind: str, **data: Any) -> dict[str, Any]:
    at = f"2026-01-01T10:00:0{number}Z"
    return {"type": kind, "data": data, "id": f"e{number}", "timestamp": at, "parentId": f"e{number - 1}"}


COPILOT_CLI: list[dict[str, Any]] = [
    _copilot(1, "session.start", sessionId="s1", copilotVersion="1.0.77", selectedModel="gpt-5-mini"),
    _copilot(2, "user.message", content="List the files", transformedContent="List the files", attachments=[]),
    _copilot(3, "assistant.reasoning", content="I need ls.", reasoningId="r1"),
    _copilot(4, "assistant.message", content="Listing.", outputTokens=12,
             toolRequests=[{"toolCallId": "c1", "name": "bash", "arguments": '{"command": "ls"}'}]),
    _copilot(5, "tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
    _copilot(6, "tool.execution_complete", toolCallId="c1", success=True, result={"content": "a.py"}),
    _copilot(7, "subagent.started", toolCallId="c2", agentName="explore", agentDisplayName="Explore"),
    _copilot(8, "assistant.message", content="One file.", toolRequests=[], parentToolCallId="c2"),
    _copilot(9, "abort", reason="user"),
]  # fmt: skip
_COST = {"input": 0.25, "output": 0.5, "total": 0.75}
PI: list[dict[str, Any]] = [
    {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T10:00:00Z", "cwd": "/work/shop"},
    {
        "type": "message",
        "id": "e1",
        "parentId": None,
        "timestamp": "2026-01-01T10:00:01Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "List the files."}], "timestamp": 1},
    },
    {
        "type": "message",
        "id": "e2",
        "parentId": "e1",
        "timestamp": "2026-01-01T10:00:02Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I need ls."},
                {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
            ],
            "model": "claude-opus-4-5",
            "usage": {"input": 12, "output": 3, "cost": _COST},
            "stopReason": "toolUse",
        },
    },
    {
        "type": "message",
        "id": "e3",
        "parentId": "e2",
        "timestamp": "2026-01-01T10:00:03Z",
        "message": {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "bash",
            "content": [{"type": "text", "text": "a.py"}],
            "isError": False,
        },
    },
]
EXAMPLES: dict[str, Any] = {
    "pi": PI,
    "openclaw": OPENCLAW,
    "copilot": COPILOT,
    "copilot-cli": COPILOT_CLI,
    "aider": AIDER,
    "cursor": CURSOR,
    "specstory": SPECSTORY_SESSION,
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "codex-exec": CODEX_EXEC,
    "openhands": OPENHANDS,
    "openhands-output": OPENHANDS_OUTPUT,
    "gemini-cli": GEMINI_CLI,
    "opencode": OPENCODE,
    "cline": CLINE,
    "swe-rows": SWE_ROW,
    **FURTHER_AGENTS,
}
# The share of a document's fields that is read, where events say of each line who wrote it, when and where.
LEAST_READ = {
    "claude-code": 0.26,
    "codex": 0.12,
    "copilot-cli": 0.1,
    "kimi": 0.1,
    "antigravity": 0.2,
    "codex-exec": 0.3,
    "openhands": 0.25,
    "openhands-output": 0.22,
}
