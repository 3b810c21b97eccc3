"""Calls of Gemini whose arguments are streamed: {"name", "willContinue"}, then `partialArgs` by JSONPath, then {}."""

from typing import Any

from apps.trajectories.formats.json_paths import Path, parse_path
from apps.trajectories.formats.placed import object_at, objects
from workers.errors import InvalidRecord

Part = dict[str, Any]
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_MOST_ITEMS = 10_000  # of an array of arguments


def goes_on(last: Part, part: Part) -> bool:
    """Whether a part continues the call of the part before."""
    before, piece = last.get("functionCall"), part.get("functionCall")
    return (
        isinstance(before, dict)
        and isinstance(piece, dict)
        and bool(before.get("willContinue"))
        and ("name" not in piece)
    )


def continued(last: Part, part: Part) -> Part:
    call, piece = dict(last["functionCall"]), part["functionCall"]
    call.pop("willContinue", None)
    return last | part | {"functionCall": _with_pieces(call, piece)}


def begun(part: Part) -> Part:
    """A part with the arguments that its first piece has."""
    call = part.get("functionCall")
    if not isinstance(call, dict) or "partialArgs" not in call:
        return part
    first = {key: value for key, value in call.items() if key != "partialArgs"}
    return part | {"functionCall": _with_pieces(first, call)}


def _with_pieces(call: Part, piece: Part) -> Part:
    arguments = call.get("args")
    for each in objects(piece.get("partialArgs")):
        path, value = each.get("jsonPath"), next((each[key] for key in _VALUES if key in each), None)
        try:
            keys = parse_path(path) if isinstance(path, str) else ()
        except InvalidRecord:
            keys = (str(path)[:200],)
        arguments = _placed(arguments, keys, None if "nullValue" in each else value)
    kept = {key: value for key, value in piece.items() if key not in ("partialArgs", "args")}
    return call | kept | ({} if arguments is None else {"args": arguments})


def _placed(holder: Any, keys: Path, value: Any) -> Any:
    """With a value at a place, which is made where it is not there; text goes on with the text before."""
    if not keys:
        return holder + value if isinstance(holder, str) and isinstance(value, str) else value
    key, rest = keys[0], keys[1:]
    if isinstance(key, str):
        found = dict(object_at({"held": holder}, "held"))
        found[key] = _placed(found.get(key), rest, value)
        return found
    items = list(holder) if isinstance(holder, list) else []
    if not 0 <= key < min(len(items) + 1, _MOST_ITEMS):  # items come in their order
        key = len(items)
    return [*items[:key], _placed(items[key] if key < len(items) else None, rest, value), *items[key + 1 :]]
