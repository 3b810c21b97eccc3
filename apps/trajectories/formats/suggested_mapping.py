"""A mapping that would read the records of a file which no format reads, as an option that can be copied."""

from typing import Any

from apps.trajectories.formats.json_paths import discover_paths, find_value, parse_path
from apps.trajectories.formats.mapping import FieldMapping, guess_fields
from workers.errors import InvalidRecord

_TRIED = 3  # records that a mapping has to read
_MOST_PATHS, _LONGEST = 200, 300  # paths of a document, characters of the option
_ANSWERS = ("text", "content", "message")  # keys of what may be an answer where none has a plainer name
_RUNS = ("messages", "response", "chosen", "rejected")


def suggested_option(documents: list[Any]) -> str:
    """`--map 'fields = {...}'` that reads the first documents; empty where no field of them looks like a run."""
    tried = [document for document in documents[:_TRIED] if isinstance(document, dict) and document]
    if not tried or len(tried) < len(documents[:_TRIED]):
        return ""
    paths = list(discover_paths(tried))[:_MOST_PATHS]
    found = guess_fields(paths) | _by_words(paths, guess_fields(paths))
    found = {field: path for field, path in found.items() if _fits(field, path, tried)}
    if not {"messages", "response"} & found.keys() and not {"chosen", "rejected"} <= found.keys():
        return ""
    try:
        mapping = FieldMapping(found)
        for document in tried:
            for _, part in mapping.split(document) if mapping.is_pair else [("", document)]:
                mapping.read(part)
    except InvalidRecord:
        return ""
    fields = ", ".join(f"{field} = {_quoted(path)}" for field, path in found.items())
    option = f"--map 'fields = {{{fields}}}'"
    return option if len(option) <= _LONGEST and option.count("'") == 2 else ""


def _by_words(paths: list[str], known: dict[str, str]) -> dict[str, str]:
    """Fields by the last word of a key (`toy_output`), where no key is the name itself; of a text that may be an
    answer, only where there is nothing plainer."""
    last: dict[str, str] = {}
    for path in paths:
        keys = parse_path(path)
        if len(keys) == 1 and isinstance(keys[0], str):
            last.setdefault(keys[0].lower().rpartition("_")[2], path)
    others = guess_fields([f"$.{word}" for word in last if word.isidentifier()])
    found = {field: last[path[2:]] for field, path in others.items() if field not in known}
    if not {*_RUNS} & (known.keys() | found.keys()):
        answer = next((last[name] for name in _ANSWERS if name in last), "")
        found |= {"response": answer} if answer else {}
    return {field: path for field, path in found.items() if path not in known.values()}


def _fits(field: str, path: str, documents: list[Any]) -> bool:
    """Whether the values at a path may be what the field is."""
    values = [find_value(document, parse_path(path)) for document in documents]
    if field == "messages":
        return all(isinstance(value, list) and value and isinstance(value[0], dict) for value in values)
    if field in ("response", "chosen", "rejected", "prompt"):
        return all(isinstance(value, str) and value.strip() for value in values)
    if field == "reward":
        return all(isinstance(value, int | float) for value in values)
    if field == "success":
        return all(isinstance(value, bool) for value in values)
    return all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
