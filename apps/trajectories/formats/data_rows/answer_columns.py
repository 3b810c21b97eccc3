"""Rows with several answers to one prompt, each in a column: a trajectory for each answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    row_id,
    row_trajectory,
)
from apps.trajectories.formats.data_rows.trainer_rows import Messages
from workers.schema import Task, Trajectory, clean
from workers.schema.decode import optional_str, require_object


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """about: further columns of this answer alone. agent: the one of them that names who gave it."""

    name: str
    about: tuple[str, ...] = ()
    agent: str = ""


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """prompt: of a row; the empty prompt where the answers hold whole conversations. prompt_names: columns it is in.
    also: further columns that a row must have, to be one of this format. answer: reads an answer's column."""

    columns: tuple[AnswerColumn, ...]
    prompt: Callable[[dict[str, Any]], Messages]
    prompt_names: tuple[str, ...]
    also: tuple[str, ...] = ()
    answer: Callable[[dict[str, Any], str], Messages] = answer_messages

    @property
    def read_patterns(self) -> tuple[str, ...]:
        names = [
            *self.prompt_names,
            *(each for column in self.columns for each in (column.name, column.agent)),
        ]
        return (*OUTCOME_READ, *(f"/{name}" for name in names if name))

    def sniff(self, document: Any) -> bool:
        return (
            isinstance(document, dict)
            and any(column.name in document for column in self.columns)
            and all(name in document for name in (*self.prompt_names[:1], *self.also))
        )

    def split(self, document: Any) -> Iterator[tuple[str, Any]]:
        """A document for each answer that there is: the row without the columns of the others."""
        row = require_object(document)
        present = [column for column in self.columns if row.get(column.name) is not None]
        if len(present) < 2:
            yield "", document
            return
        for column in present:
            others = {
                name for other in self.columns if other is not column for name in (other.name, *other.about)
            }
            yield "", {name: value for name, value in row.items() if name not in others}

    def read(self, document: Any) -> Trajectory:
        row, _ = clean(require_object(document))
        column = next((each for each in self.columns if row.get(each.name) is not None), self.columns[0])
        agent = optional_str(row.get(column.agent), pointer=f"/{column.agent}") if column.agent else None
        prompt = self.prompt(row)
        return row_trajectory(
            prompt,
            self.answer(row, column.name),
            row,
            known=(*self.prompt_names, column.name, column.agent),
            pointer=f"/{column.name}",
            task=None if prompt else Task(id=""),
            agent=agent or "",
            id=row_id(row.get("id")),
        )
