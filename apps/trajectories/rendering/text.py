"""Detects the type of a text from its content."""

from django.utils.safestring import SafeString

from apps.trajectories.rendering.code import code_html
from apps.trajectories.rendering.markdown import markdown_html
from apps.trajectories.rendering.safe import escape
from apps.trajectories.rendering.terminal import terminal_html
from apps.trajectories.rendering.trees import json_html, parsed
from workers.schema.patterns import TextPattern

_DIFF = TextPattern(r"(?m)^(?:diff --git |--- .+\n\+\+\+ .+\n@@ )")


def message_html(text: str) -> SafeString:
    """Message text: Markdown, unless it is JSON."""
    value = parsed(text)
    return markdown_html(text) if value is None else json_html(value)


def output_html(text: str) -> SafeString:
    """What a tool answers: terminal output, JSON, a diff, or as it is."""
    if "\x1b" in text:
        return terminal_html(text)
    value = parsed(text)
    if value is not None:
        return json_html(value)
    return code_html(text, "diff") if _DIFF.search(text[:20_000]) else escape(text)
