"""Sessions of coding agents."""

from typing import Any

from apps.trajectories.formats.coding_agents import (
    aider,
    claude_code,
    cline,
    codex,
    codex_exec,
    copilot,
    copilot_cli,
    cursor,
    gemini_cli,
    openclaw,
    opencode,
    openhands,
    openhands_output,
    pi,
    specstory,
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
    ("openclaw", "OpenClaw's telemetry", openclaw),
    ("copilot", "debug logs of GitHub Copilot in VS Code", copilot),
    ("copilot-cli", "sessions of GitHub Copilot's command line", copilot_cli),
    ("pi", "sessions of pi and OpenClaw", pi),
    ("cursor", "Cursor's chat exports and agent transcripts", cursor),
    ("aider", "Aider's chat and LLM histories", aider),
    ("specstory", "SpecStory's histories", specstory),
    ("openhands-output", "OpenHands output.jsonl", openhands_output),
    ("swe-rows", "SWE-smith, SWE-Gym and SWE-rebench rows", swe_rows),
)
