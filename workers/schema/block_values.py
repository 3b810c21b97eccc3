"""Content blocks that hold what they are under `value`, as LLaMA-Factory writes them: {"type": "text", "value": "..."}.

The value of a call is JSON text of its name and arguments, that of a picture its address.
"""

from typing import Any

from workers.schema.bounded import loads

_AS_TEXT = ("text", "reasoning", "thinking")
_AS_CALL = ("tool_call", "function_call")
_AS_ADDRESS = ("image_url", "video_url", "audio_url", "image", "video", "audio")


def has_value(block: Any) -> bool:
    return (
        isinstance(block, dict) and isinstance(block.get("value"), str) and isinstance(block.get("type"), str)
    )


def unwrapped(block: Any) -> Any:
    """The block as other APIs have it; one of another kind as it is."""
    if not has_value(block):
        return block
    kind, value = block["type"], block["value"]
    rest = {key: item for key, item in block.items() if key != "value"}
    if kind in _AS_TEXT:
        return rest | {"text": value}
    if kind in _AS_ADDRESS:
        return rest | {"url": value}
    if kind in _AS_CALL:
        try:
            call = loads(value)
        except ValueError:
            return block
        return rest | call if isinstance(call, dict) and isinstance(call.get("name"), str) else block
    return block
