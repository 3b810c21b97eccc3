"""The parts of a message or an observation as one text."""

from collections.abc import Iterable

from workers.schema.records import Part


def parts_text(parts: Iterable[Part]) -> str:
    """Text as it is; anything else as a marker, since an encoder of text cannot see it."""
    shown = (part.text or "" if part.type == "text" else f"[{part.type}]" for part in parts)
    return "\n".join(text for text in shown if text)
