"""`trl-unpaired`: single runs with a thumb up or down, as TRL's KTO trainer reads them.

    {"prompt": [messages], "completion": [messages], "label": true, "origin": "person"}

From ratings: accepted, or above the middle of the scale, is true; rejected or below is false; the middle says nothing.
From comparisons, as TRL itself unpairs them: the chosen run is true, the rejected one false; both bad are both false.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from apps.datasets.exports.conversations import has_tools, json_lines, prompt_and_rest
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.datasets.statistics import is_usable_pair
from workers.schema import PreferenceRecord, RatingRecord, Trajectory
from workers.schema.records import Origin

Labelled = tuple[Trajectory, bool, Origin]


def export(dataset_version: DatasetVersion, split: str | None) -> Iterator[str]:
    return json_lines(
        partial(_labelled, dataset_version, split), lambda labelled: has_tools(labelled[0]), _row
    )


def _labelled(dataset_version: DatasetVersion, split: str | None) -> Iterator[Labelled]:
    for record in read_dataset_records(dataset_version, split):
        if isinstance(record, RatingRecord):
            label = _thumb(record)
            if label is not None:
                yield record.trajectory, label, record.origin
        elif isinstance(record, PreferenceRecord) and is_usable_pair(record) and record.choice != "tie":
            yield record.a, record.choice == "a", record.origin
            yield record.b, record.choice == "b", record.origin


def _thumb(record: RatingRecord) -> bool | None:
    if record.rating is None or record.scale is None:
        return record.accept
    middle = sum(record.scale) / 2
    return None if record.rating == middle else record.rating > middle


def _row(labelled: Labelled, tools: bool) -> dict[str, Any]:
    run, label, origin = labelled
    prompt, completion = prompt_and_rest(run, tools=tools)
    return {"prompt": prompt, "completion": completion, "label": label, "origin": origin}
