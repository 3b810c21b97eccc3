"""Sessions of coding agents."""

from typing import Any

FORMATS: tuple[tuple[str, str, Any], ...] = ()
