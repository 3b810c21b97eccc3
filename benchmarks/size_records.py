"""Records like those that agents write, as many as are asked for: chats with tools, sessions of coding agents.

All of it follows from the number of a record. Texts are cut out of one text of random words, so that making them costs
little next to importing them.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

_SIZES = (
    4,
    4,
    6,
    8,
    8,
    12,
    16,
    24,
    40,
    80,
    200,
)  # KB of a record: most are small, most bytes are in large ones
_KB = 1024
_WORDS = 20_000
_TEXT_KB = 2048
_TURNS = 12  # of a session


def _random_text() -> str:
    dice = random.Random(33)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(dice.choices(letters, k=dice.randint(2, 10))) for _ in range(_WORDS)]
    found: list[str] = []
    size = 0
    while size < _TEXT_KB * _KB:
        found.append(words[int(_WORDS * dice.random() ** 3)])  # a few words are most of a text
        size += len(found[-1]) + 1
    return " ".join(found)


TEXT = _random_text()


def text(number: int, length: int) -> str:
    start = number * 7919 % (len(TEXT) - length)
    return TEXT[start : start + length]


def chat_record(number: int) -> bytes:
    """A dialogue whose tool gives most of its bytes, as a line."""
    size = _SIZES[number * 31 % len(_SIZES)] * _KB
    call = {"name": "read_page", "arguments": json.dumps({"page": number})}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You look things up."},
        {"role": "user", "content": text(number, 300)},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": text(number + 1, size - 1500)},
        {"role": "assistant", "content": text(number + 2, 600)},
    ]
    record = {"id": f"r{number}", "task": f"t{number // 4}", "messages": messages, "success": number % 3 == 0}
    if number % 2:
        del record["id"]  # such records are counted by their content
    return json.dumps(record).encode() + b"\n"


def chat_records(size: int) -> Iterator[bytes]:
    """Lines of about `size` bytes together."""
    number = done = 0
    while done < size:
        line = chat_record(number)
        number, done = number + 1, done + len(line)
        yield line


def _claude_event(session: str, number: int, kind: str, content: Any, **more: Any) -> bytes:
    agent = more.get("agentId", "")
    uuid = f"{session}{agent}-{number}"
    message = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 3, "cache_read_input_tokens": 9000, "output_tokens": 40 + number}
        message |= {"id": f"msg_{uuid}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
    event = {
        "parentUuid": f"{session}{agent}-{number - 1}" if number else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/repo",
        "sessionId": session,
        "version": "2.0.14",
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": f"2026-11-01T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
    }
    return json.dumps(event | more).encode() + b"\n"


def _session_id(number: int) -> str:
    return f"{number:08x}-7a1c-4f0e-9d3b-0123456789ab"


def claude_session(number: int, session: str = "", **more: Any) -> list[bytes]:
    """The lines of a session of Claude Code. session: its id, of another one for a sub-agent of that. more: fields of
    each event."""
    session = session or _session_id(number)
    lines = [_claude_event(session, 0, "user", text(number, 400), **more)]
    for turn in range(_TURNS):
        identity = f"toolu_{number}_{turn}"
        seed = number * _TURNS + turn
        said: list[dict[str, Any]] = [{"type": "text", "text": text(seed, 200)}]
        said += [
            {"type": "tool_use", "id": identity, "name": "Read", "input": {"file_path": f"/repo/{seed}.py"}}
        ]
        length = _SIZES[seed * 7 % 8] * _KB // 8
        result = [{"type": "tool_result", "tool_use_id": identity, "content": text(seed + 1, length)}]
        shown = {"toolUseResult": {"type": "text", "file": {"filePath": f"/repo/{seed}.py", "numLines": 40}}}
        lines.append(_claude_event(session, 2 * turn + 1, "assistant", said, **more))
        lines.append(_claude_event(session, 2 * turn + 2, "user", result, **shown, **more))
    lines.append(
        _claude_event(
            session, 2 * _TURNS + 1, "assistant", [{"type": "text", "text": text(number, 800)}], **more
        )
    )
    return lines


def codex_session(number: int) -> list[bytes]:
    """The lines of a rollout of Codex."""
    session = f"{number:08x}-0aaa-7bbb-8ccc-0123456789ab"
    about: dict[str, Any] = {
        "id": session,
        "cwd": "/repo",
        "originator": "codex_cli_rs",
        "cli_version": "0.50.0",
    }
    question = [{"type": "input_text", "text": text(number, 400)}]
    payloads: list[tuple[str, Any]] = [
        ("session_meta", about),
        ("response_item", {"type": "message", "role": "user", "content": question}),
    ]
    for turn in range(_TURNS):
        identity = f"call_{number}_{turn}"
        seed = number * _TURNS + turn
        arguments = json.dumps({"command": ["cat", f"{seed}.py"]})
        call = {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": identity}
        output = json.dumps(
            {"output": text(seed, _SIZES[seed * 7 % 8] * _KB // 8), "metadata": {"exit_code": 0}}
        )
        payloads.append(("response_item", call))
        payloads.append(
            ("response_item", {"type": "function_call_output", "call_id": identity, "output": output})
        )
    answer = [{"type": "output_text", "text": text(number + 1, 800)}]
    payloads.append(("response_item", {"type": "message", "role": "assistant", "content": answer}))
    return [
        json.dumps({"timestamp": "2026-11-01T10:00:00.000Z", "type": kind, "payload": payload}).encode()
        + b"\n"
        for kind, payload in payloads
    ]


def session_files(count: int) -> Iterator[tuple[str, list[bytes]]]:
    """Names and lines of files as their clients lay them out; every tenth is of a sub-agent of the session before."""
    for number in range(count):
        if number % 3 == 2:
            yield (
                f"codex/sessions/2026/11/{number % 28 + 1:02}/rollout-{number:08}.jsonl",
                codex_session(number),
            )
            continue
        project = f"claude/projects/-repo-{number % 40}"
        if number % 10 == 1:
            above = _session_id(number - 1)
            lines = claude_session(number, above, isSidechain=True, agentId=f"a{number}")
            yield f"claude/projects/-repo-{(number - 1) % 40}/{above}/subagents/agent-a{number}.jsonl", lines
        else:
            yield f"{project}/{_session_id(number)}.jsonl", claude_session(number)


def session_lines(size: int) -> Iterator[bytes]:
    """The lines of sessions of Claude Code one after another, of about `size` bytes together."""
    number = done = 0
    while done < size:
        lines = claude_session(number)
        number, done = number + 1, done + sum(map(len, lines))
        yield from lines
