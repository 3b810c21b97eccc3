"""Sessions of coding agents."""

from typing import Any

from apps.trajectories.formats.coding_agents import claude_code

FORMATS: tuple[tuple[str, str, Any], ...] = (
    ("claude-code", "Claude Code sessions and stream-json", claude_code),
)
