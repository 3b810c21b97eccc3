"""Rows with a list of answers to one prompt: a document for each answer, with what the row says of all of them."""

from collections.abc import Iterator
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.decode import require_list, require_object


def split_answers(document: Any, names: str, name: str) -> Iterator[tuple[str, Any]]:
    """names: the list's key. name: the key of one answer in the documents; a row that has it is one of them."""
    row = require_object(document)
    if name in row and names not in row:
        yield "", document
        return
    answers = require_list(row.get(names), pointer=f"/{names}")
    if not answers:
        raise InvalidRecord("the list of answers is empty; leave the row out.", pointer=f"/{names}")
    common = {key: value for key, value in row.items() if key != names}
    for index, answer in enumerate(answers):
        yield f"/{names}/{index}", {name: answer, **common}
