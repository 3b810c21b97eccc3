"""`trl-unpaired`: single runs with a thumb up or down, as TRL's KTO trainer reads them.

    {"prompt": [messages], "completion": [messages], "label": true, "origin": "person"}

and `tools` and `images` as in `trl`. From ratings: accepted, or above the middle of the scale, is true; rejected or
below is false; the middle says nothing. From comparisons, as TRL itself unpairs them: the chosen run is true, the
rejected one false; both bad are both false.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.columns import LeftOut, json_lines
from apps.datasets.exports.conversations import (
    count_named_media,
    has_images,
    numeric,
    prompt_and_rest,
    prompt_images,
    tools_field,
    without_images,
)
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.datasets.statistics import is_usable_pair
from apps.trajectories.attachments import restore_attachments
from workers.schema import PreferenceRecord, RatingRecord, Trajectory
from workers.schema.records import KIND_OF, Origin

Labelled = tuple[Trajectory, bool, Origin, str]  # and the record


def export(dataset_version: DatasetVersion, split: str | None, left_out: LeftOut) -> Iterator[str]:
    some_images = any(
        has_images(prompt_and_rest(_restored(dataset_version, trajectory))[0])
        for trajectory, *_ in labelled_trajectories(dataset_version, split, Counter())
    )

    def rows(left_out: LeftOut) -> Iterator[dict[str, Any]]:
        for trajectory, label, origin, text in labelled_trajectories(dataset_version, split, left_out):
            restored = _restored(dataset_version, trajectory)
            prompt, rest = prompt_and_rest(restored)
            count_named_media(left_out, restored)
            messages, images = prompt_images(prompt, left_out, parts=some_images)
            row = {"prompt": messages, "completion": without_images(rest, left_out)}
            row |= {"label": label, "origin": origin, FIELD: text} | tools_field(trajectory)
            yield row | ({"images": images} if some_images else {})

    return json_lines(rows, left_out)


def labelled_trajectories(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[Labelled]:
    """Trajectory, whether it is good, origin, and the record; the others are counted in `left_out`."""
    for record in read_dataset_records(dataset_version, split):
        if (reason := numeric(record)) is not None and isinstance(record, RatingRecord | PreferenceRecord):
            left_out[reason] += 1
        elif isinstance(record, RatingRecord):
            label = _thumb(record)
            if label is None:
                left_out["ratings in the middle of their scale"] += 1
            else:
                yield record.trajectory, label, record.origin, record_text(record)
        elif not isinstance(record, PreferenceRecord):
            left_out[f"{KIND_OF[type(record)]} records"] += 1
        elif is_usable_pair(record) and record.choice != "tie":
            yield (
                record.a,
                record.choice == "a",
                record.origin,
                record_text(record, this=0),
            )
            yield (
                record.b,
                record.choice == "b",
                record.origin,
                record_text(record, this=1),
            )
        else:
            left_out_because = (
                "ties" if record.choice == "tie" else "comparisons by one criterion, or of equal contents"
            )
            left_out[left_out_because] += 1


def _restored(dataset_version: DatasetVersion, trajectory: Trajectory) -> Trajectory:
    return restore_attachments(dataset_version.project, trajectory)


def _thumb(record: RatingRecord) -> bool | None:
    if record.rating is None or record.scale is None:
        return record.accept
    middle = sum(record.scale) / 2
    return None if record.rating == middle else record.rating > middle
