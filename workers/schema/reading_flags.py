"""What no model reads of an item, by name: nothing that was sent is left out silently."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from workers.schema.chat_text import IN_TEXT, mentions_calls, mentions_marks, strip_end_marks
from workers.schema.items import Content, ScoreInput, Text
from workers.schema.patterns import TextPattern
from workers.schema.pictures import is_sent, picture_places
from workers.schema.records import Part, Source, Step, Trajectory
from workers.schema.tool_results import has_orphans

_READ = frozenset(("role", "refusal", "tool_call_id"))
_READ_OF_RESULTS = _READ | {"name"}
_READ_OF_CALLS = frozenset(("type", "index", "id", "item_id", "item_type"))
_READ_OF_ITEMS = frozenset(("type", "id", "status", "call_id"))  # of the Responses API, which only name them
_NAMES = {"name": "speaker"}  # one that is no text
_UNUSUAL = TextPattern(r"[^A-Za-z0-9_.-]")
_AFTER = "unread:after_last_agent_step"
_LONGEST = 40


def reading_flags(
    item: ScoreInput,
    *,
    reads_reference: bool,
    named_sources: Collection[Source] = (),
    conditioned: Collection[str] = (),
    sees_pictures: bool = False,
    reads_end: bool = False,
) -> tuple[str, ...]:
    """reads_reference: whether a component compares with the reference answer. named_sources: the sources of steps
    whose speakers are read. conditioned: the conditions that models read, of trajectories only. sees_pictures: whether
    a model reads pictures; those that were not sent, but named by an address, are read by none. reads_end: whether
    it reads those after the last agent step."""
    flags = dict.fromkeys((*item.flags, *_of_content(item.content, sees_pictures)))
    if reads_end and isinstance(item.content, Trajectory) and _ends_with_pictures(item.content):
        flags.pop(_AFTER, None)
    if isinstance(item.content, Trajectory) and _has_unread_speaker(item.content, named_sources):
        flags["unread:speaker"] = None
    is_read = isinstance(item.content, Trajectory)
    if item.reference is not None and not (reads_reference or (is_read and "reference" in conditioned)):
        flags["unread:reference"] = None
    for name in item.conditions:
        if not (is_read and name in conditioned):
            flags[f"unread:{name}"] = None
    for name in conditioned:
        if not (isinstance(item.content, Trajectory) and item.content.conditions.get(name)):
            flags[f"missing:{name}"] = None
    return tuple(flags)


def _ends_with_pictures(trajectory: Trajectory) -> bool:
    """Whether there are only pictures after the last agent step, and all of them were sent."""
    steps = trajectory.steps[trajectory.agent_steps[-1] + 1 :] if trajectory.agent_steps else ()
    parts = [part for step in steps for _, content in picture_places(step) for part in content]
    return all(part.type == "image" and is_sent(part.source) for part in parts)


def _has_unread_speaker(trajectory: Trajectory, named_sources: Collection[Source]) -> bool:
    last = trajectory.agent_steps[-1:]
    steps = trajectory.steps[: last[0] + 1] if last else ()
    return any(step.speaker is not None and step.source not in named_sources for step in steps)


def _of_content(content: Content, sees_pictures: bool) -> Iterable[str]:
    if isinstance(content, Text):
        return _of_text(content.text)
    return _of_trajectory(content, sees_pictures) if isinstance(content, Trajectory) else ()


def _of_text(text: str) -> Iterable[str]:
    if _has_marks(text):
        yield IN_TEXT
    if not strip_end_marks(text).strip():
        yield "empty_response"


def _has_marks(text: str | None) -> bool:
    return text is not None and (mentions_marks(text) or mentions_calls(text))


def _of_trajectory(trajectory: Trajectory, sees_pictures: bool) -> Iterable[str]:
    agent = trajectory.agent_steps
    if not agent:
        return
    steps = trajectory.steps[: agent[-1] + 1]
    for step in steps:
        yield from _of_step(step, sees_pictures)
    if has_orphans(steps):
        yield "orphan_result"
    if any(
        _has_marks(text) for step in steps if step.source == "agent" for text in (step.text, step.reasoning)
    ):
        yield IN_TEXT
    if len(steps) < len(trajectory.steps):
        yield _AFTER
    last = steps[-1]
    if not (last.message or last.reasoning or last.tool_calls or last.features) or _is_blank(last):
        yield "empty_response"


def _is_blank(step: Step) -> bool:
    has_words = any(part.text or part.type != "text" for part in step.message)
    return not (has_words or step.reasoning or step.tool_calls or step.features)


def _of_step(step: Step, sees_pictures: bool) -> Iterable[str]:
    yield from _of_parts(step.message, sees_pictures)
    yield from _of_fields(step.extra.get("message"), _READ)
    for call in step.tool_calls:
        yield from _of_fields(call.extra.get("call"), _READ_OF_CALLS)
    for result in step.observation:
        yield from _of_parts(result.content, sees_pictures)
        yield from _of_fields(result.extra.get("message"), _READ_OF_RESULTS)


def _of_parts(parts: Iterable[Part], sees_pictures: bool) -> Iterable[str]:
    for part in parts:
        if part.type != "text" and not (sees_pictures and part.type == "image" and is_sent(part.source)):
            yield f"unread:{part.type}"


def _of_fields(given: Any, read: frozenset[str]) -> Iterable[str]:
    """Fields of a message that have no place of their own. Empty ones say nothing."""
    if not isinstance(given, Mapping):
        return
    for key, value in given.items():
        if key == "items" and isinstance(value, list):
            for item in value:
                yield from _of_fields(item, _READ_OF_ITEMS)
        elif key not in read and value is not False and value not in (None, "", [], {}):
            name = _UNUSUAL.sub("_", _NAMES.get(key) or str(key))[:_LONGEST]
            yield f"unread:{name}"
