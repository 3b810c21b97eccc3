"""Sessions of coding agents."""

from typing import Any

from apps.trajectories.formats.coding_agents import (
    aider,
    antigravity,
    claude_code,
    cline,
    codex,
    codex_exec,
    copilot,
    copilot_cli,
    cursor,
    droid,
    gemini_cli,
    grok,
    kimi,
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
    ("kimi", "sessions of Kimi Code and kimi-cli", kimi),
    ("antigravity", "transcripts of Antigravity", antigravity),
    ("grok", "chats of Grok's command line", grok),
    ("droid", "stream-json of Droid", droid),
    ("pi", "sessions of pi, OpenClaw and Droid", pi),
    ("cursor", "Cursor's chat exports and agent transcripts", cursor),
    ("aider", "Aider's chat and LLM histories", aider),
    ("specstory", "SpecStory's histories", specstory),
    ("openhands-output", "OpenHands output.jsonl", openhands_output),
    ("swe-rows", "SWE-smith, SWE-Gym and SWE-rebench rows", swe_rows),
)
