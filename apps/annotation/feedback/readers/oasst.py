"""`oasst`: OpenAssistant's messages or trees: the ranks of the replies to one message, and the labels of each reply
of the assistant as scores from 0 to 1."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from django.conf import settings

from apps.annotation.feedback.incoming import Found, Incoming, UnreadField
from apps.annotation.feedback.readers.nectar import ranking
from apps.annotation.feedback_types.rubric import ScoreValue
from apps.trajectories import formats
from apps.trajectories.import_reader import read_import_records
from apps.trajectories.serialization import with_task_id
from workers.errors import InvalidRecord
from workers.schema import Trajectory
from workers.schema.decode import json_type_name, require_object

_ANNOTATOR = "oasst"
_SCALE = (0.0, 1.0)


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    found = formats.FORMATS["oasst"]
    assert found.gather is not None
    gathered = found.gather(settings.MAX_RECORD_BYTES)
    for record in read_import_records(stream):
        if record.skipped:
            yield record.line, UnreadField(record.pointer, "dropped", record.skipped)
        else:
            gathered.add(record)
    replies: dict[str, list[tuple[int, Trajectory, dict[str, Any]]]] = {}
    for record in gathered.records():
        if record.error is not None:
            yield record.line, record.error
            continue
        if record.skipped:
            yield record.line, UnreadField(record.pointer, "dropped", record.skipped)
            continue
        try:
            trajectory = with_task_id(found.read(record.document))
            message = record.document["thread"][-1]
            incomings = list(_scores(message, trajectory))
        except InvalidRecord as error:
            yield record.line, error
            continue
        yield from ((record.line, incoming) for incoming in incomings)
        parent = f"{message.get('message_tree_id')} {message.get('parent_id')}"
        replies.setdefault(parent, []).append((record.line, trajectory, message))
    for siblings in replies.values():
        yield from _ranks(siblings)


def _ranks(siblings: list[tuple[int, Trajectory, dict[str, Any]]]) -> Iterator[tuple[int, Found]]:
    ranked = [
        (line, trajectory, message["rank"])
        for line, trajectory, message in siblings
        if isinstance(message.get("rank"), int | float) and not isinstance(message["rank"], bool)
    ]
    if len(ranked) < 2:
        return
    places = tuple(trajectory for _, trajectory, _ in ranked)
    try:
        yield ranked[0][0], ranking(places, [int(rank) for _, _, rank in ranked], _ANNOTATOR, "/rank")
    except InvalidRecord as error:
        yield ranked[0][0], error


def _scores(message: dict[str, Any], trajectory: Trajectory) -> Iterator[Incoming]:
    for name, number in _label_values(message.get("labels")):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
            raise InvalidRecord(
                f"a label is a number from 0 to 1, not {json_type_name(number)} {str(number)[:40]}.",
                pointer="/labels",
            )
        value = ScoreValue(criterion=name, value=float(number), scale=_SCALE)
        yield Incoming(
            kind="rubric", task=trajectory.task, places=(trajectory,), annotator=_ANNOTATOR, value=value
        )


def _label_values(labels: Any) -> list[tuple[str, Any]]:
    """Names and values of {"name": [...], "value": [...]}, as `datasets` has it, or of {name: {"value", "count"}}."""
    labels = require_object(labels or {}, pointer="/labels")
    names, values = labels.get("name"), labels.get("value")
    if isinstance(names, list) and isinstance(values, list):
        return [(str(name), value) for name, value in zip(names, values, strict=False)]
    return [
        (name, require_object(given, pointer=f"/labels/{name}").get("value"))
        for name, given in labels.items()
    ]
