"""Pictures, videos and sounds of a row, which its texts name by placeholders, as LLaMA-Factory and LLaVA have them."""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.trainer_rows import Messages, image_source
from workers.schema.patterns import TextPattern

# The columns, several or one, by the placeholder and the type of a content part.
MEDIA = {
    "<image>": ("image_url", ("images", "image")),
    "<video>": ("video_url", ("videos", "video")),
    "<audio>": ("audio_url", ("audios", "audio")),
}
COLUMNS = tuple(name for _, names in MEDIA.values() for name in names)
_PLACEHOLDER = TextPattern("(<image>|<video>|<audio>)")


def with_media(messages: Messages, row: dict[str, Any]) -> Messages:
    """Messages of text with parts where a placeholder names one; those without a placeholder stand before the first
    text of the user. Placeholders without anything to stand for are left as text."""
    left = {mark: iter(_sources(row, names)) for mark, (_, names) in MEDIA.items()}
    found = [_with_parts(message, left) for message in messages]
    rest = [_part(mark, source) for mark, sources in left.items() for source in sources]
    if not rest:
        return found
    place = next((index for index, message in enumerate(found) if message.get("role") == "user"), None)
    if place is None:
        return [{"role": "user", "content": rest}, *found]
    content = found[place].get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    found[place] = found[place] | {"content": [*rest, *parts]}
    return found


def _sources(row: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    name = next((name for name in names if row.get(name) not in (None, [], "")), None)
    if name is None:
        return []
    value = row[name]
    if isinstance(value, list):
        return [image_source(each, f"/{name}/{index}") for index, each in enumerate(value)]
    return [image_source(value, f"/{name}")]


def _part(mark: str, source: str) -> dict[str, Any]:
    kind = MEDIA[mark][0]
    return {"type": kind, kind: {"url": source}}


def _with_parts(message: dict[str, Any], left: dict[str, Iterator[str]]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, str) or _PLACEHOLDER.search(content) is None:
        return message
    parts: list[dict[str, Any]] = []
    for piece in _PLACEHOLDER.split(content):
        source = next(left[piece], None) if piece in left else None
        if source is not None:
            parts.append(_part(piece, source))
        elif piece:
            parts.append({"type": "text", "text": piece})
    return message if all(part["type"] == "text" for part in parts) else message | {"content": parts}
