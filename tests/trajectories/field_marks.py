"""Documents with one marked value each, and where the mark is found after the import: no field may vanish."""

import copy
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from apps.trajectories import formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from workers.errors import InvalidRecord
from workers.schema import Trajectory

READ, KEPT, DROPPED, REFUSED, VANISHED = "read", "kept", "dropped", "refused", "vanished"
_UNKNOWN_KEY = "unheard_of"
Place = tuple[str | int, ...]


def marked(document: Any) -> Iterator[tuple[Place, str, Any]]:
    """(place, mark, document): each text and number replaced by a mark, and to each object a marked field added."""
    for number, (place, value) in enumerate(places(document)):
        if (
            place[-2:-1] and place[-1] == "key" and "attributes" in place
        ):  # OTLP: the name of a field, not its value
            continue
        if isinstance(value, dict):
            mark = f"mark{number:05d}zq"
            yield (*place, _UNKNOWN_KEY), mark, _changed(document, (*place, _UNKNOWN_KEY), mark)
        elif isinstance(value, bool) or value is None or value == "":
            continue
        elif isinstance(value, str):
            mark = f"mark{number:05d}zq"
            yield place, mark, _changed(document, place, mark)
        elif isinstance(value, int | float):
            mark = str(7_300_000 + number)
            yield place, mark, _changed(document, place, type(value)(mark))


def use_of_mark(format: str, document: Any, mark: str) -> str:
    """read, kept, dropped or refused; vanished where the mark is nowhere and nothing says so."""
    reader = ImportReader(formats.FORMATS[format])
    found: list[Trajectory] = []
    try:
        for record in read_import_records(io.BytesIO(json.dumps(document).encode())):
            parts = list(reader.parts(record))
            found += [_read(reader, part) for part in parts]
        found += [_read(reader, part) for part in reader.rest()]
    except InvalidRecord:
        return REFUSED
    read, kept = "", ""
    for trajectory in found:
        whole, shown = _texts(trajectory)
        read, kept = read + shown, kept + whole
    if mark in read:
        return READ
    if mark in kept:
        return KEPT
    return DROPPED if reader.dropped.counts else VANISHED


def uses(format: str, document: Any, sample: Callable[[int], bool] = lambda number: True) -> dict[Place, str]:
    """What becomes of each field."""
    before = _dropped(format, document)
    found = {}
    for number, (place, mark, changed) in enumerate(marked(document)):
        if not sample(number):
            continue
        use = use_of_mark(format, changed, mark)
        if use == DROPPED and not _names_more(before, format, changed, place):
            use = VANISHED
        found[place] = use
    return found


def shares(found: dict[Place, str]) -> Counter[str]:
    return Counter(found.values())


def _read(reader: ImportReader, part: Any) -> Trajectory:
    reader.prepare(part)
    return reader.read(part)


def _dropped(format: str, document: Any) -> dict[tuple[str, str], int]:
    reader = ImportReader(formats.FORMATS[format])
    for record in read_import_records(io.BytesIO(json.dumps(document).encode())):
        for part in list(reader.parts(record)):
            reader.prepare(part)
    for part in reader.rest():
        reader.prepare(part)
    return dict(reader.dropped.counts)


def _names_more(before: dict[tuple[str, str], int], format: str, document: Any, place: Place) -> bool:
    """Whether the list of what was dropped names the place, or something around it."""
    path = "/" + "/".join("*" if isinstance(each, int) else each for each in place)
    counts = _dropped(format, document)
    grown = {named for (named, reason), count in counts.items() if count > before.get((named, reason), 0)}
    endings = {"/" + "/".join(path.split("/")[start:]) for start in range(1, len(path.split("/")))}
    return bool(grown) or any(
        ending == named or ending.startswith(f"{named}/") for named, _ in counts for ending in endings
    )


def _texts(trajectory: Trajectory) -> tuple[str, str]:
    """All of it, and what people see of it and models may be shown."""
    built = msgspec.to_builtins(trajectory, str_keys=True)
    whole = json.dumps(built)
    for step in built["steps"]:
        step.pop("extra", None)
        for holder in (*step.get("message", ()), *step.get("tool_calls", ())):
            holder.pop("extra", None)
        for result in step.get("observation", ()):
            result.pop("extra", None)
            for part in result.get("content", ()):
                part.pop("extra", None)
    built.pop("metadata", None)
    built["task"].pop("metadata", None)
    return whole, json.dumps(built)


def places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        yield place, value
        for key, item in value.items():
            yield from places(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*place, index))
    else:
        yield place, value


def _changed(document: Any, place: Place, value: Any) -> Any:
    found = copy.deepcopy(document)
    holder = found
    for step in place[:-1]:
        holder = holder[step]
    if not place:
        return value
    holder[place[-1]] = value
    return found
