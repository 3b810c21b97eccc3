"""Rendered chat text, as trainers send it, read back into messages: by the marks of known chat templates."""

from workers.schema.chat_text.detection import detect_format, mentions_marks, strip_end_marks
from workers.schema.chat_text.formats import FORMATS, ChatFormat, named_format
from workers.schema.chat_text.reading import (
    IN_TEXT,
    ReadText,
    read_pair,
    read_prompt,
    read_response,
    read_whole,
)
from workers.schema.chat_text.tool_calls import mentions_calls

__all__ = [
    "FORMATS",
    "IN_TEXT",
    "ChatFormat",
    "ReadText",
    "detect_format",
    "mentions_calls",
    "mentions_marks",
    "named_format",
    "read_pair",
    "read_prompt",
    "read_response",
    "read_whole",
    "strip_end_marks",
]
