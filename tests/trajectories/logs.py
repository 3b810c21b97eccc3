"""Logs of events as the importer reads them: what is made of lines of JSON, and what becomes of their fields."""

import io
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from apps.trajectories import formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from tests.trajectories.real_files import comes_back
from workers.errors import InvalidRecord
from workers.schema import Step, Trajectory


class ReadLog:
    """What the importer makes of a file, in its detected format: trajectories, errors, and what it dropped."""

    def __init__(self, raw: bytes, format: str | None = None) -> None:
        self.trajectories: list[Trajectory] = []
        self.errors: list[str] = []
        self.reader = ImportReader(formats.FORMATS[format] if format else None)
        for record in read_import_records(io.BytesIO(raw)):
            for part in self.reader.parts(record):
                self._read(part)
        for part in self.reader.rest():
            self._read(part)
        self.dropped = [(use["path"], use["reason"]) for use in self.reader.dropped.as_json()]

    def _read(self, part: Any) -> None:
        try:
            self.reader.prepare(part)
            self.trajectories.append(self.reader.read(part))
        except InvalidRecord as error:
            self.errors.append(str(error))

    @property
    def format(self) -> str | None:
        return self.reader.format.name if self.reader.format else None

    @property
    def only(self) -> Trajectory:
        assert not self.errors, self.errors
        (found,) = self.trajectories
        assert comes_back(found)
        return found


def read_lines(events: Iterable[Any]) -> ReadLog:
    return ReadLog("\n".join(json.dumps(event) for event in events).encode())


def read_document(document: Any) -> ReadLog:
    return ReadLog(json.dumps(document).encode())


def unread(trajectory: Trajectory) -> dict[str, Any]:
    found: dict[str, Any] = trajectory.metadata.get("unread", {})
    return found


def sources(trajectory: Trajectory) -> str:
    """The sources of the steps by their first letters, such as `suaa`."""
    return "".join(step.source[0] for step in trajectory.steps)


def step_counts(trajectory: Trajectory) -> Counter[str]:
    steps: tuple[Step, ...] = trajectory.steps
    return Counter(
        {
            "agent": sum(step.source == "agent" for step in steps),
            "user": sum(step.source == "user" for step in steps),
            "calls": sum(len(step.tool_calls) for step in steps),
            "tied": sum(len(step.observation) for step in steps if step.tool_calls),
            "orphans": sum("orphan" in step.extra for step in steps),
            "reasoning": sum(step.reasoning is not None for step in steps),
        }
    )
