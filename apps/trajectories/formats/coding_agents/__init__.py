"""Sessions of coding agents."""

from typing import Any

from apps.trajectories.formats.coding_agents import (
    claude_code,
    cline,
    codex,
    codex_exec,
    gemini_cli,
    opencode,
    openhands,
    openhands_output,
    swe_rows,
)

FORMATS: tuple[tuple[str, str, Any], ...] = (
    ("claude-code", "Claude Code sessions and stream-json", claude_code),
    ("codex-exec", "OpenAI Codex exec --json", codex_exec),
    ("codex", "OpenAI Codex rollouts", codex),
    ("openhands", "OpenHands events", openhands),
    ("gemini-cli", "Gemini CLI chats, checkpoints and stream-json", gemini_cli),
    ("opencode", "opencode sessions", opencode),
    ("cline", "Cline and Roo Code histories", cline),
    ("openhands-output", "OpenHands output.jsonl", openhands_output),
    ("swe-rows", "SWE-smith, SWE-Gym and SWE-rebench rows", swe_rows),
)
