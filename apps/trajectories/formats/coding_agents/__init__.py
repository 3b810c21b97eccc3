"""Sessions of coding agents."""

from typing import Any

from apps.trajectories.formats.coding_agents import (
    claude_code,
    codex,
    codex_exec,
    openhands,
    openhands_output,
)

FORMATS: tuple[tuple[str, str, Any], ...] = (
    ("claude-code", "Claude Code sessions and stream-json", claude_code),
    ("codex-exec", "OpenAI Codex exec --json", codex_exec),
    ("codex", "OpenAI Codex rollouts", codex),
    ("openhands", "OpenHands events", openhands),
    ("openhands-output", "OpenHands output.jsonl", openhands_output),
)
