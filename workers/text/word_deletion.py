"""A trajectory without a word: deleted wherever the agent wrote it, in messages and reasoning, not in tool calls, and
from the name of the agent where a step has one.

Words are those of `workers.text.ngrams`, in small letters; of a long one the first characters count, so that words
that begin alike are one.
"""

import re
from collections.abc import Callable

from msgspec import structs

from workers.schema import Part, Step, Text, Trajectory
from workers.schema.part_text import parts_text
from workers.text.rendered import Content
from workers.text.speakers import with_names

LONGEST_WORD = 64  # characters
# One class, which takes time that grows with the text alone. RE2 took 10 microseconds for each word.
_WORD = re.compile("[0-9A-Za-z_\x80-\ud7ff\ue000-\U0010ffff]+")
AgentWords = list[list[str]]


def agent_words(content: Content, *, with_speakers: bool = False) -> AgentWords:
    """By agent step, the words of its reasoning and its message, in order. with_speakers: as a model reads the steps
    that reads the names of their speakers."""
    if isinstance(content, Text):
        return [_words(content.text)]
    if not isinstance(content, Trajectory):
        return []
    content = with_names(content) if with_speakers else content
    steps = [content.steps[index] for index in content.agent_steps]
    return [[*_words(step.reasoning or ""), *_words(parts_text(step.message))] for step in steps]


def without_word(content: Content, word: str) -> Content:
    def delete(text: str) -> str:
        return _WORD.sub(lambda found: "" if _key(found[0]) == word else found[0], text)

    if isinstance(content, Text):
        return Text(delete(content.text))
    if not isinstance(content, Trajectory):
        return content
    steps = [_deleted(step, delete) if step.source == "agent" else step for step in content.steps]
    return structs.replace(content, steps=tuple(steps))


def _deleted(step: Step, delete: Callable[[str], str]) -> Step:
    message = tuple(_deleted_part(part, delete) for part in step.message)
    reasoning = None if step.reasoning is None else delete(step.reasoning)
    speaker = None if step.speaker is None else delete(step.speaker).strip() or None
    return structs.replace(step, message=message, reasoning=reasoning, speaker=speaker)


def _deleted_part(part: Part, delete: Callable[[str], str]) -> Part:
    if part.type != "text" or part.text is None:
        return part
    return structs.replace(part, text=delete(part.text))


def _words(text: str) -> list[str]:
    return [_key(found) for found in _WORD.findall(text)]


def _key(word: str) -> str:
    return word.lower()[:LONGEST_WORD]
