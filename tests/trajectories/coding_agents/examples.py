"""A small document of each format of a coding agent, for tests of all formats."""

from typing import Any

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
EXAMPLES: dict[str, Any] = {"claude-code": CLAUDE_CODE}
# The share of a document's fields that is read, where events say of each line who wrote it, when and where.
LEAST_READ = {"claude-code": 0.26}
