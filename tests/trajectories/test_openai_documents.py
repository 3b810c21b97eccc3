"""Documents of `export_trajectories --format openai` against the types of OpenAI's own package, and read again."""

import io
import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from apps.trajectories import formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from apps.trajectories.openai_documents import to_document
from tests.trajectories.conftest import lines
from tests.trajectories.test_field_coverage import ALL
from workers.schema import Trajectory

_MESSAGES = TypeAdapter(list[ChatCompletionMessageParam])


def consumed(value: Any) -> None:
    """Pydantic validates what is Iterable when it is iterated."""
    if isinstance(value, dict):
        for item in value.values():
            consumed(item)
    elif value is not None and not isinstance(value, str | int | float | bool):
        for item in value:
            consumed(item)


def read(format: str, document: Any) -> list[Trajectory]:
    reader = ImportReader(formats.FORMATS[format])
    parts = [part for row in read_import_records(io.BytesIO(lines(document))) for part in reader.parts(row)]
    return [reader.read(part) for part in [*parts, *reader.rest()]]


@pytest.mark.parametrize("name", [name for name in ALL if name != "gymnasium"])  # of numbers, no messages
def test_messages_pass_the_types_of_openai_and_come_back(name: str) -> None:
    for trajectory in read(*ALL[name]):
        document = json.loads(json.dumps(to_document(trajectory)))
        consumed(_MESSAGES.validate_python(document["messages"]))
        (back,) = read("openai", document)
        again = json.loads(json.dumps(to_document(back)))
        assert again["messages"] == document["messages"]
        assert back.content_hash == read("openai", again)[0].content_hash
