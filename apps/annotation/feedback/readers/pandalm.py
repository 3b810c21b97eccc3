"""`pandalm` (test set v1): {"idx", "instruction", "input", "response1", "response2", "annotator1..3"}, a JSON array.

The task is instruction and input, the item `idx`. annotatorN: 0 tie, 1 the first, 2 the second. Responses that are JSON
booleans are the words `True` and `False`.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from apps.annotation.feedback.incoming import Found, Incoming
from apps.annotation.feedback.readers.json_lines import read_json_array
from apps.annotation.feedback.readers.row_coverage import RowFields
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.trajectories.field_coverage import PathPatterns
from workers.errors import InvalidRecord
from workers.schema import Choice, Task, Trajectory, from_prompt_response
from workers.schema.messages import build_trajectory

_FIELDS = RowFields(
    PathPatterns(
        f"/{name}"
        for name in (
            "idx",
            "instruction",
            "input",
            "response1",
            "response2",
            "annotator1",
            "annotator2",
            "annotator3",
        )
    )
)
_CHOICE: dict[str, Choice] = {"0": "tie", "1": "a", "2": "b"}


def read(stream: BinaryIO) -> Iterator[tuple[int, Found]]:
    return read_json_array(stream, parse, _FIELDS)


def parse(record: dict[str, Any]) -> Iterator[Incoming]:
    if "idx" not in record or "instruction" not in record:
        raise InvalidRecord("expected idx and instruction; is this PandaLM's test set?")
    prompt = "\n\n".join(
        part for part in (str(record["instruction"]), str(record.get("input") or "")) if part
    )
    task = Task(id=f"pandalm-{hashlib.sha256(prompt.encode()).hexdigest()[:16]}", instruction=prompt)
    places = (_response(record, "response1", prompt, task), _response(record, "response2", prompt, task))
    for number in (1, 2, 3):
        said = str(record.get(f"annotator{number}"))
        if said not in _CHOICE:
            raise InvalidRecord(
                f"the annotation must be 0, 1 or 2, not {said}.", pointer=f"/annotator{number}"
            )
        yield Incoming(
            kind="pairwise", task=task, places=places, annotator=f"annotator{number}", item=str(record["idx"]),
            value=PreferenceValue(choice=_CHOICE[said]),
        )  # fmt: skip


def _response(record: dict[str, Any], name: str, prompt: str, task: Task) -> Trajectory:
    if name not in record:
        raise InvalidRecord(f"{name} is missing.", pointer=f"/{name}")
    return build_trajectory(from_prompt_response(prompt, str(record[name])), task)
