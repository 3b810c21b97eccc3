"""Rows with a list of answers to one prompt: a document for each answer, with what the row says of all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import answer_messages, row_trajectory
from apps.trajectories.formats.data_rows.trainer_rows import Messages
from workers.errors import InvalidRecord
from workers.schema import Trajectory
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


@dataclass(frozen=True, slots=True)
class AnswerList:
    """Rows with `answers` that are objects. prompt: the key of what was asked. keys: those by which an answer is known.
    text: the key of its words. known: its keys that are read; the others are metadata."""

    prompt: str
    keys: frozenset[str]
    text: str
    known: tuple[str, ...]

    def sniff(self, document: Any) -> bool:
        if not isinstance(document, dict) or self.prompt not in document:
            return False
        answers = document.get("answers", [document.get("answer")])
        return (
            isinstance(answers, list)
            and bool(answers)
            and isinstance(answers[0], dict)
            and self.keys <= answers[0].keys()
        )

    def split(self, document: Any) -> Iterator[tuple[str, Any]]:
        return split_answers(document, "answers", "answer")

    def trajectory(
        self, row: dict[str, Any], asked: Messages, given: dict[str, Any], **fields: Any
    ) -> Trajectory:
        """given: the answer of the row. Raises InvalidRecord."""
        return row_trajectory(
            asked,
            answer_messages(given, self.text),
            row,
            known=(self.prompt, "answer"),
            pointer=f"/answer/{self.text}",
            metadata={"answer": {name: value for name, value in given.items() if name not in self.known}},
            **fields,
        )
