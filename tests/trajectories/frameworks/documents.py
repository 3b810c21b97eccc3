"""A small run of each format of frameworks and model APIs, in the shape of their writers."""

from typing import Any

from tests.trajectories.frameworks.further_documents import FURTHER_DOCUMENTS

ASKED = {"role": "user", "content": "Weather in Oslo?"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": '{"city": "Oslo"}',
}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "3 C, rain"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Three degrees.", "annotations": []}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I look it up."}]}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-5",
    "output": [THOUGHT, CALL, RESULT, SAID],
    "usage": {"input_tokens": 30, "output_tokens": 12},
}
ANTHROPIC = {
    "id": "msg_9",
    "type": "message",
    "role": "assistant",
    "model": "claude-5",
    "content": [
        {"type": "thinking", "thinking": "Look it up.", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "Oslo"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"title": "Oslo: 3 C"}]},
        {"type": "text", "text": "Three degrees."},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 40, "output_tokens": 9},
}
STREAM: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "msg_9", "model": "claude-5", "role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I lo"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok."}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "weather"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"city": '}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"Oslo"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]  # fmt: skip
GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "I look it up.", "thought": True},
                    {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5},
    "modelVersion": "gemini-3",
    "responseId": "r1",
}
BATCH: list[dict[str, Any]] = [
    {
        "custom_id": "request-1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "gpt-5", "messages": [{"role": "system", "content": "Be brief."}, ASKED]},
    },
    {
        "id": "batch_req_1",
        "custom_id": "request-1",
        "response": {
            "status_code": 200,
            "request_id": "req_1",
            "body": {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "model": "gpt-5-2026",
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": "Three."},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {"prompt_tokens": 21, "completion_tokens": 2},
            },
        },
        "error": None,
    },
]
NEMO = {
    "responses_create_params": {"input": [ASKED], "tools": [{"type": "function", "name": "weather"}]},
    "response": RESPONSE,
    "reward": 1.0,
    "agent_ref": {"type": "responses_api_agents", "name": "simple_agent"},
    "expected_answer": "3",
}
ADK = {
    "id": "s1",
    "app_name": "desk",
    "user_id": "u1",
    "state": {"city": "Oslo"},
    "events": [
        {"id": "e1", "author": "user", "content": {"role": "user", "parts": [{"text": "Weather in Oslo?"}]}},
        {
            "id": "e2",
            "author": "root_agent",
            "invocation_id": "i1",
            "content": {
                "role": "model",
                "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}],
            },
            "usage_metadata": {"prompt_token_count": 8, "candidates_token_count": 3},
        },
        {
            "id": "e3",
            "author": "root_agent",
            "content": {
                "role": "user",
                "parts": [{"function_response": {"id": "c1", "name": "weather", "response": {"t": "3 C"}}}],
            },
        },
        {"id": "e4", "author": "writer", "content": {"role": "model", "parts": [{"text": "Three degrees."}]}},
    ],
    "last_update_time": 1.5,
}
RUN_STATE = {
    "$schemaVersion": "1.13",
    "original_input": "Weather in Oslo?",
    "current_agent": {"name": "clerk"},
    "context": {"usage": {"requests": 2, "input_tokens": 30, "output_tokens": 12}},
    "generated_items": [
        {"type": "tool_call_item", "agent": {"name": "clerk"}, "raw_item": CALL},
        {
            "type": "tool_call_output_item",
            "agent": {"name": "clerk"},
            "raw_item": RESULT,
            "output": "3 C, rain",
        },
        {"type": "message_output_item", "agent": {"name": "writer"}, "raw_item": SAID},
    ],
    "model_responses": [{"output": [CALL], "response_id": "resp_1", "usage": {"input_tokens": 30}}],
    "max_turns": 10,
}
TRACE: list[dict[str, Any]] = [
    {"object": "trace", "id": "trace_1", "workflow_name": "desk", "group_id": "g1"},
    {"object": "trace.span", "id": "a1", "trace_id": "trace_1", "parent_id": None, "started_at": "1",
     "span_data": {"type": "agent", "name": "clerk", "tools": ["weather"]}},
    {"object": "trace.span", "id": "g1", "trace_id": "trace_1", "parent_id": "a1", "started_at": "2",
     "span_data": {"type": "generation", "model": "gpt-5", "input": [ASKED], "usage": {"input_tokens": 9},
                   "output": [{"role": "assistant", "content": "Three."}]}},
]  # fmt: skip
PYDANTIC: list[dict[str, Any]] = [
    {
        "kind": "request",
        "instructions": "Be brief.",
        "run_id": "run-1",
        "parts": [
            {"part_kind": "user-prompt", "content": ["Weather?", {"kind": "image-url", "url": "http://x/a"}]}
        ],
    },
    {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "I look.", "signature": "c2ln"},
            {
                "part_kind": "tool-call",
                "tool_name": "weather",
                "args": {"city": "Oslo"},
                "tool_call_id": "c1",
            },
        ],
        "usage": {"input_tokens": 5, "output_tokens": 6},
        "model_name": "test",
    },
    {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "weather", "content": {"t": 3}, "tool_call_id": "c1"}
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Three."}], "model_name": "test"},
]
AUTOGEN_MESSAGES: list[dict[str, Any]] = [
    {"source": "user", "models_usage": None, "content": "Weather in Oslo?", "type": "TextMessage"},
    {
        "source": "planner",
        "models_usage": {"prompt_tokens": 26, "completion_tokens": 3},
        "content": [{"id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'}],
        "type": "ToolCallRequestEvent",
    },
    {
        "source": "planner",
        "content": [{"call_id": "c1", "name": "weather", "content": "3 C", "is_error": False}],
        "type": "ToolCallExecutionEvent",
    },
    {"source": "writer", "content": "Three degrees.", "type": "TextMessage"},
]
TEAM = {
    "type": "TeamState",
    "version": "1.0.0",
    "agent_states": {
        "planner/1": {
            "type": "ChatAgentContainerState",
            "agent_state": {
                "type": "AssistantAgentState",
                "llm_context": {
                    "messages": [
                        {"content": "Weather?", "source": "user", "type": "UserMessage"},
                        {
                            "content": "3 C.",
                            "thought": "Hm.",
                            "source": "planner",
                            "type": "AssistantMessage",
                        },
                    ]
                },
            },
            "message_buffer": [],
        },
        "RoundRobinGroupChatManager/1": {
            "type": "RoundRobinManagerState",
            "message_thread": [AUTOGEN_MESSAGES[0], AUTOGEN_MESSAGES[3]],
            "current_turn": 1,
        },
    },
}
SMOLAGENTS: list[dict[str, Any]] = [
    {"task": "Weather in Oslo?", "task_images": None},
    {
        "step_number": 1,
        "timing": {"start_time": 1.0, "end_time": 3.0, "duration": 2.0},
        "model_output": "Thought: look.",
        "code_action": "weather('Oslo')",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "python_interpreter", "arguments": "weather('Oslo')"},
            }
        ],
        "observations": "3 C, rain",
        "error": None,
        "token_usage": {"input_tokens": 12, "output_tokens": 6},
    },
]
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "human", "data": {"content": "Weather in Oslo?", "type": "human"}},
    {
        "type": "ai",
        "data": {
            "content": "I look.",
            "type": "ai",
            "tool_calls": [{"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}],
            "usage_metadata": {"input_tokens": 20, "output_tokens": 9},
            "response_metadata": {"model_name": "gpt-5"},
        },
    },
    {"type": "tool", "data": {"content": "3 C", "type": "tool", "name": "weather", "tool_call_id": "c1"}},
    {"type": "ai", "data": {"content": "Three.", "type": "ai", "name": "writer"}},
]
LETTA = {
    "messages": [
        {"id": "m1", "message_type": "user_message", "content": "Weather?"},
        {"id": "m2", "message_type": "reasoning_message", "reasoning": "I look it up.", "step_id": "s1"},
        {
            "id": "m2",
            "message_type": "tool_call_message",
            "tool_call": {"name": "weather", "arguments": '{"city": "Oslo"}', "tool_call_id": "c1"},
        },
        {
            "id": "m3",
            "message_type": "tool_return_message",
            "tool_return": "3 C",
            "tool_call_id": "c1",
            "status": "ok",
        },
        {"id": "m4", "message_type": "assistant_message", "content": "Three."},
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 20},
}
CREW = {
    "raw": "A report on Oslo.",
    "tasks_output": [
        {
            "description": "Find the weather.",
            "raw": "It is 3 C.",
            "agent": "Researcher",
            "expected_output": "a fact",
        },
        {
            "description": "Write a report.",
            "raw": "A report on Oslo.",
            "agent": "Writer",
            "summary": "Write a...",
        },
    ],
    "token_usage": {"total_tokens": 60, "prompt_tokens": 40, "completion_tokens": 20},
}
REACT = {
    "question": "Weather in Oslo?",
    "trajectory": {
        "thought_0": "I look.",
        "tool_name_0": "weather",
        "tool_args_0": {"city": "Oslo"},
        "observation_0": "3 C",
        "thought_1": "Done.",
        "tool_name_1": "finish",
        "tool_args_1": {},
        "observation_1": "Completed.",
    },
    "reasoning": "It said so.",
    "answer": "Three degrees.",
}
AGENTSCOPE: list[dict[str, Any]] = [
    {"id": "m1", "name": "user", "role": "user", "content": "Weather?", "metadata": None, "timestamp": "t1"},
    {
        "id": "m2",
        "name": "Friday",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}],
        "metadata": None,
        "timestamp": "t2",
    },
    {
        "id": "m3",
        "name": "system",
        "role": "system",
        "content": [{"type": "tool_result", "id": "c1", "name": "weather", "output": "3 C"}],
        "metadata": None,
        "timestamp": "t3",
    },
]
ADK_TESTS: list[dict[str, Any]] = [
    {
        "query": "How warm is it?",
        "expected_tool_use": [
            {"tool_name": "weather", "tool_input": {"city": "Oslo"}, "mock_tool_output": "3 C"},
        ],
        "reference": "Three degrees.",
    }
]
MANAGED: list[dict[str, Any]] = [
    {"type": "user.message", "id": "e1", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
    {"type": "session.thread_created", "id": "e2", "agent_name": "clerk", "session_thread_id": "t1"},
    {
        "type": "agent.tool_use",
        "id": "e3",
        "name": "weather",
        "input": {"city": "Oslo"},
        "session_thread_id": "t1",
        "evaluated_permission": "allow",
    },
    {"type": "agent.tool_result", "tool_use_id": "e3", "content": [{"type": "text", "text": "3 C"}]},
    {"type": "agent.message", "id": "e5", "content": [{"type": "text", "text": "Three degrees."}]},
    {"type": "span.model_request_end", "id": "e6", "model_usage": {"input_tokens": 30, "output_tokens": 12}},
    {"type": "session.status_idle", "id": "e7", "stop_reason": {"type": "end_turn"}},
]
AGNO_RUN = {
    "run_id": "r1",
    "agent_id": "clerk",
    "agent_name": "clerk",
    "session_id": "s1",
    "content": "Three degrees.",
    "content_type": "str",
    "model": "gpt-5",
    "status": "COMPLETED",
    "messages": [
        ASKED | {"from_history": False},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
                }
            ],
            "metrics": {"input_tokens": 30, "output_tokens": 5},
        },
        {"role": "tool", "tool_call_id": "c1", "tool_name": "weather", "content": "3 C"},
        {"role": "assistant", "content": "Three degrees."},
    ],
}
AGNO = {"session_id": "s1", "agent_id": "clerk", "session_data": {"session_state": {}}, "runs": [AGNO_RUN]}


def _node(name: str, parent: str | None, message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": [], "message": message}


def _exported(role: str, content: dict[str, Any], recipient: str = "all") -> dict[str, Any]:
    author = {"role": role, "name": "weather" if role == "tool" else None}
    return {"id": f"of {role}", "author": author, "content": content, "recipient": recipient}


CHATGPT = {
    "title": "Weather",
    "conversation_id": "v1",
    "current_node": "n4",
    "mapping": {
        "n0": _node("n0", None, None),
        "n1": _node("n1", "n0", _exported("user", {"content_type": "text", "parts": ["Weather in Oslo?"]})),
        "b1": _node(
            "b1", "n1", _exported("assistant", {"content_type": "text", "parts": ["I cannot know."]})
        ),
        "n2": _node(
            "n2",
            "n1",
            _exported("assistant", {"content_type": "code", "text": '{"city": "Oslo"}'}, "weather"),
        ),
        "n3": _node("n3", "n2", _exported("tool", {"content_type": "execution_output", "text": "3 C"})),
        "n4": _node(
            "n4", "n3", _exported("assistant", {"content_type": "text", "parts": ["Three degrees."]})
        ),
    },
}
CLAUDE_EXPORT = {
    "uuid": "v1",
    "name": "Weather",
    "chat_messages": [
        {
            "uuid": "m1",
            "sender": "human",
            "text": "Weather in Oslo?",
            "attachments": [{"file_name": "map.txt", "extracted_content": "Oslo lies in the south."}],
        },
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "Three degrees.",
            "content": [
                {"type": "thinking", "thinking": "I look it up."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "3 C"}]},
                {"type": "text", "text": "Three degrees."},
            ],
        },
    ],
}
DOCUMENTS: dict[str, Any] = {
    "chatgpt-export": CHATGPT,
    "claude-export": CLAUDE_EXPORT,
    "agno": AGNO,
    "managed-agents": MANAGED,
    "adk-tests": ADK_TESTS,
    "nemo-gym": NEMO,
    "adk": ADK,
    "adk-events": [event | {"invocation_id": "i1"} for event in ADK["events"]],  # type: ignore[attr-defined]
    "openai-agents": RUN_STATE,
    "openai-trace": TRACE,
    "pydantic-ai": PYDANTIC,
    "autogen": TEAM,
    "autogen-events": AUTOGEN_MESSAGES,
    "smolagents": SMOLAGENTS,
    "langchain": LANGCHAIN,
    "letta": LETTA,
    "crewai": CREW,
    "dspy": REACT,
    "message-log": AGENTSCOPE,
    "openai-items": [ASKED, THOUGHT, CALL, RESULT, SAID],
    "model-stream": STREAM,
    "gemini": GEMINI,
    "model-response": ANTHROPIC,
    "call-log": BATCH,
    **FURTHER_DOCUMENTS,
}
