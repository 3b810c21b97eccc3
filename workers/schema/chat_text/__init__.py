"""Rendered chat text, as trainers send it, read back into messages: by the marks of known chat templates."""

from workers.schema.chat_text.formats import FORMATS, ChatFormat, detect_format, mentions_marks, named_format
from workers.schema.chat_text.reading import IN_TEXT, ReadText, read_pair, read_whole, strip_end_marks

__all__ = [
    "FORMATS",
    "IN_TEXT",
    "ChatFormat",
    "ReadText",
    "detect_format",
    "mentions_marks",
    "named_format",
    "read_pair",
    "read_whole",
    "strip_end_marks",
]
