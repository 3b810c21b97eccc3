"""Singular queries of JSONPath (RFC 9535): names and indices only, such as `$.meta.id`, `$['a key'][0]`, `$.turns[-1]`.

A query finds at most one value, in time proportional to its length; it can run nothing.
"""

from typing import Any

from workers.errors import InvalidRecord
from workers.schema.patterns import TextPattern

_TOKEN = TextPattern(
    r"""(?:\.([^\s.\[\]'"]+)|\[(-?(?:0|[1-9][0-9]{0,8}))\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\])"""
)
_LONGEST_PATH, _MOST_PATHS, _DEEPEST, _MOST_EXAMPLE = 500, 200, 6, 80
_MISSING = object()
Path = tuple[str | int, ...]


def parse_path(text: str) -> Path:
    """The names and indices of a singular JSONPath query. Raises InvalidRecord."""
    if not text.startswith("$") or len(text) > _LONGEST_PATH:
        raise InvalidRecord(f"{text[:80]!r} is no JSONPath: it begins with $, such as $.meta.id.")
    keys: list[str | int] = []
    place = 1
    while place < len(text):
        found = _TOKEN.match(text[place:])
        if found is None:
            raise InvalidRecord(
                f"{text[:80]!r} is not read from {text[place : place + 20]!r} on: only names and indices are, "
                "such as $.turns[0]['a key']."
            )
        name, index, single, double = found.groups()
        quoted = single if single is not None else double
        keys.append(int(index) if index is not None else name if name is not None else _unescaped(quoted))
        place += found.end()
    return tuple(keys)


def _unescaped(text: str) -> str:
    return text.replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def find_value(document: Any, path: Path) -> Any:
    """None where the document has no such place."""
    for key in path:
        if isinstance(key, int):
            is_there = isinstance(document, list) and -len(document) <= key < len(document)
            document = document[key] if is_there else _MISSING
        else:
            document = document.get(key, _MISSING) if isinstance(document, dict) else _MISSING
        if document is _MISSING:
            return None
    return document


def discover_paths(documents: list[Any]) -> dict[str, str]:
    """The paths of the values of some documents, with an example of each."""
    found: dict[str, str] = {}

    def visit(value: Any, path: str, depth: int) -> None:
        if len(found) >= _MOST_PATHS or depth > _DEEPEST:
            return
        if path != "$" and path not in found and value not in (None, ""):
            found[path] = _example(value)
        if isinstance(value, dict):
            for key, inner in value.items():
                visit(inner, path + _token(str(key)), depth + 1)
        elif isinstance(value, list) and value and depth < _DEEPEST:
            visit(value[0], f"{path}[0]", depth + 1)
            if len(value) > 1:
                visit(value[-1], f"{path}[-1]", depth + 1)

    for document in documents:
        visit(document, "$", 0)
    return found


def _token(key: str) -> str:
    found = _TOKEN.fullmatch(f".{key}")
    if found is not None and found.group(1) == key:
        return f".{key}"
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


def _example(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {', '.join(list(map(str, value))[:4])}"[:_MOST_EXAMPLE]
    text = " ".join(str(value)[: 4 * _MOST_EXAMPLE].split())
    return text if len(text) <= _MOST_EXAMPLE else f"{text[:_MOST_EXAMPLE]} ..."


def without_value(document: Any, path: Path) -> Any:
    """The document without what is at a path."""
    if not path:
        return None
    key, rest = path[0], path[1:]
    if isinstance(key, str) and isinstance(document, dict) and key in document:
        inner = {name: value for name, value in document.items() if name != key}
        return inner | ({key: without_value(document[key], rest)} if rest else {})
    if isinstance(key, int) and isinstance(document, list) and -len(document) <= key < len(document):
        inner_list = list(document)
        inner_list[key] = without_value(document[key], rest)
        return inner_list
    return document
