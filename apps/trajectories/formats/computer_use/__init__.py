"""Runs of agents that use a computer, a phone or a browser."""

from typing import Any

FORMATS: tuple[tuple[str, str, Any], ...] = ()
