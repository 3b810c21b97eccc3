"""Runs as agent frameworks and model APIs write them."""

from typing import Any

FORMATS: tuple[tuple[str, str, Any], ...] = ()
