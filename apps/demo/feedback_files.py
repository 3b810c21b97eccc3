"""What a file is that someone has: comparisons, ratings, records of feedback, or traces with their outcomes.

A row is recognised as `import_trajectories` recognises it (`apps.trajectories.formats`); where rows of its format also
say what is better, a reader of feedback takes them.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.conf import settings

from apps.annotation.feedback.readers import READERS
from apps.core.errors import DomainError
from apps.core.storage.unpacking import bounds_of_operator
from apps.trajectories import formats
from apps.trajectories.formats.record import Record, encoded
from apps.trajectories.formats.stream import read_records

LEAST = 10  # rows of feedback that anything is trained on
_LOOKED_AT = 200  # records before the first that a format recognises
_SHOWN = 12  # columns in an error
# By the format that a row looks like: the reader of feedback that takes the same rows.
_READERS = {
    "feedback": "jsonl",
    "preference": "trl",
    "trl-stepwise": "trl-stepwise",
    "openrlhf": "openrlhf",
    **{
        name: name
        for name in (
            *(
                "hh",
                "helpsteer",
                "helpsteer-preference",
                "safe-rlhf",
                "ultrafeedback",
                "nectar",
                "alpaca-eval",
            ),
            *(
                "pandalm",
                "shp",
                "webgpt",
                "chatbot-arena",
                "answer-pairs",
                "oasst",
                "stack-exchange",
                "prm800k",
            ),
            *("math-shepherd", "who-and-when", "agentrx", "autolibra"),
        )
    },
}
_ACCEPTED = ("label", "kto_tag")  # columns that say of one answer whether it is accepted
_MAY_BE_ACCEPTED = ("prompt-completion", "sharegpt", "alpaca", "openai")
# Of arenas whose rows have a column of 0 and 1 for each way it can end.
_ONE_HOT = {"winner_model_a": "a", "winner_model_b": "b", "winner_tie": "tie"}


@dataclass(frozen=True, slots=True)
class FeedbackFile:
    """format: of the rows. reader: of feedback; empty where the file holds trajectories with their outcomes.

    columns: the names that rows have, by those that they get. is_rewritten: whether rows are changed before that.
    """

    path: Path
    format: str
    title: str
    reader: str
    records: int
    columns: Mapping[str, str]
    is_rewritten: bool

    @property
    def what(self) -> str:
        """In words, with the number of rows."""
        kind = f"feedback, read as `{self.reader}`" if self.reader else "trajectories with their outcomes"
        return f"{self.records:,} records of {self.title}: {kind}"

    @contextmanager
    def opened(self) -> Iterator[BinaryIO | Path]:
        """The file as its reader takes it: its own bytes, or its rows under their new names as JSON lines."""
        if self.path.is_dir():
            yield self.path
        elif not self.is_rewritten:
            with self.path.open("rb") as stream:
                yield stream
        else:
            with tempfile.TemporaryFile() as rows:
                for record in _records(self.path):
                    if record.error is not None:
                        raise DomainError(f"{self.path}, line {record.line}: {record.error.message}")
                    rows.write(encoded(_rewritten(record.document, self.columns)) + b"\n")
                rows.seek(0)
                yield cast(BinaryIO, rows)


def parse_columns(text: str) -> dict[str, str]:
    """`prompt=question,chosen=better`: the names that rows have, by those that they get. Raises DomainError."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, column = part.partition("=")
        if not (name.strip() and equals and column.strip()):
            raise DomainError(f"--columns has {part!r}; write NAME=COLUMN, such as prompt=question.")
        found[name.strip()] = column.strip()
    return found


def look_at(path: Path, columns: Mapping[str, str]) -> FeedbackFile:
    """Reads the whole file once. Raises DomainError where it holds nothing that a reward is learnt from."""
    if not path.exists():
        raise DomainError(f"The file {path} does not exist.")
    found, first, count, is_rewritten = None, None, 0, bool(columns)
    for record in _records(path):
        if record.skipped:
            continue
        if record.error is not None:
            raise DomainError(f"{path}, line {record.line}: {record.error.message}")
        count += 1
        if found is None and count <= _LOOKED_AT:
            document = _rewritten(record.document, columns)
            first = first or document
            found, row = formats.find(document), document
            is_rewritten = is_rewritten or document != record.document
    if found is None:
        raise DomainError(_unrecognised(path, first))
    reader = _reader(found.name, row)
    if reader and count < LEAST and found.name != "feedback":
        raise DomainError(
            f"{path} has {count} {'row' if count == 1 else 'rows'} of feedback; a reward needs at least {LEAST} to "
            "learn from, and some hundred to be worth it. Collect more, or annotate in the browser (`touchstone up`)."
        )
    return FeedbackFile(path, found.name, found.title, reader, count, columns, is_rewritten)


def _records(path: Path) -> Iterator[Record]:
    limit, bounds = settings.MAX_RECORD_BYTES, bounds_of_operator()
    if path.is_dir():
        yield from read_records(path, limit=limit, bounds=bounds)
        return
    with path.open("rb") as stream:
        yield from read_records(stream, limit=limit, bounds=bounds)


def _rewritten(document: Any, columns: Mapping[str, str]) -> Any:
    if not isinstance(document, dict):
        return document
    names = {column: name for name, column in columns.items()}
    row = {
        names.get(key, key): value for key, value in document.items() if key in names or key not in columns
    }
    if "winner" not in row and (
        told := [name for name in _ONE_HOT if str(row.get(name)) in ("1", "1.0", "True")]
    ):
        row = {key: value for key, value in row.items() if key not in _ONE_HOT} | {
            "winner": _ONE_HOT[told[0]]
        }
    return row


def _reader(format: str, row: Any) -> str:
    if format in _MAY_BE_ACCEPTED and any(name in row for name in _ACCEPTED):
        return "trl-unpaired"
    reader = _READERS.get(format, "")
    return reader if reader in READERS else ""


def _unrecognised(path: Path, document: Any) -> str:
    shown = ", ".join(list(document)[:_SHOWN]) if isinstance(document, dict) else "none"
    return (
        f"{path} is in no format that is recognised; its columns are: {shown}. Say what they are: --columns "
        "prompt=COLUMN,chosen=COLUMN,rejected=COLUMN of comparisons, prompt=,response_a=,response_b=,winner= of an "
        "arena, or prompt=,response=,reward= of single answers with a number. docs/formats.md lists every format."
    )
