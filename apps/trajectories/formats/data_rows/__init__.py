"""Rows of trainers and of public data sets."""

from typing import Any

FORMATS: tuple[tuple[str, str, Any], ...] = ()
