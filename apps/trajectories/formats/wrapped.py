"""Documents that hold records under keys: results by the id of their task, or records next to what is said of all of
them, such as the parameters of the run.

Only a document that no format reads is looked into, and only where all that its members hold is of one format. A list
of the events of one run is a record too. What is
said around the records is put into each of them, as `wrapper`, so that it is in their metadata: `key` is the name that
the record stood under.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.trajectories.formats.record import encoded
from workers.schema.decode import escape

WRAPPER = "wrapper"  # key of the records
_DEEPEST = 3  # levels of keys that are looked into
_LOOKED = 64  # records of a list or a map that are looked at before all of them are
_MOST_OTHERS = 4  # of records of a map for each member that is none
_MOST_AROUND = 4 * 2**10  # bytes of what is said around the records, as JSON


@dataclass(frozen=True, slots=True)
class WrappedRecord:
    """pointer: its place in the document. around: what is said of it outside of it."""

    pointer: str
    document: Any
    around: dict[str, Any]

    @property
    def marked(self) -> Any:
        """The record with what is said around it."""
        if not isinstance(self.document, dict) or not self.around or WRAPPER in self.document:
            return self.document
        return self.document | {WRAPPER: self.around}


@dataclass(frozen=True, slots=True)
class WrappedRecords:
    """format: the name of the one that all of them have. left: paths of what is too large to be put into each."""

    format: str
    records: list[WrappedRecord]
    left: list[str]


def wrapped_records(
    document: Any,
    name_of: Callable[[Any], str | None],
    name_of_log: Callable[[list[Any]], str | None] = lambda events: None,
) -> WrappedRecords | None:
    """name_of: the name of the format of a document, None for none; name_of_log: of a list of events. None where the
    document holds no records, or records of several formats."""
    walk = _Walk(name_of, name_of_log)
    walk.visit(document, "", {}, _DEEPEST)
    if len(walk.names) != 1 or walk.is_mixed:
        return None
    return WrappedRecords(walk.names.pop(), walk.records, walk.left)


# What was asked, where it stands outside of the records that answer it.
_ASKED = (
    *(
        "instruction",
        "prompt",
        "question",
        "query",
        "problem",
        "task_description",
        "definition",
        "Definition",
    ),
    "goal",
)


class _Walk:
    def __init__(
        self, name_of: Callable[[Any], str | None], name_of_log: Callable[[list[Any]], str | None]
    ) -> None:
        self.records: list[WrappedRecord] = []
        self.names: set[str] = set()
        self.left: list[str] = []
        self.is_mixed = False  # whether records lack something that stands next to them, or are none
        self._name_of, self._name_of_log = name_of, name_of_log

    def visit(self, document: Any, pointer: str, around: dict[str, Any], depth: int) -> None:
        if not isinstance(document, dict) or not document or not depth:
            return
        members = {key: value for key, value in document.items() if self._holds(value, depth)}
        said = {key: value for key, value in document.items() if key not in members}
        is_map = len(members) > 1
        if is_map and len(said) > 1 and all(isinstance(value, dict) for value in said.values()):
            self.is_mixed = self.is_mixed or len(said) * _MOST_OTHERS > len(members)
            members, said = document, {}  # the format says what is wrong with them
        if members and any(isinstance(said.get(name), str) and said[name] for name in _ASKED):
            self.is_mixed = True  # what was asked stands outside of what would be read
        outside = around | self._short(said, pointer) if members else around
        for key, value in members.items():
            about = outside | ({"key": key} if is_map else {})
            where = f"{pointer}/{escape(key)}"
            if isinstance(value, list) and (name := self._name_of_log(value)):
                self.names.add(name)
                self.records.append(WrappedRecord(where, value, about))
                self.left += [
                    f"{pointer}/{escape(key)}" for key in said if said[key] not in (None, "", [], {})
                ]
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    self._add(item, f"{where}/{index}", about)
            elif self._name_of(value) is None and self._holds(value, depth):
                self.visit(value, where, about, depth - 1)
            else:
                self._add(value, where, about)

    def _add(self, document: Any, pointer: str, around: dict[str, Any]) -> None:
        name = self._name_of(document)
        if name is not None:
            self.names.add(name)
        self.records.append(WrappedRecord(pointer, document, around))

    def _holds(self, value: Any, depth: int) -> bool:
        """Whether a member is a record, holds some, or is a list of records."""
        if isinstance(value, list):
            return bool(self._name_of_log(value)) or (
                bool(value)
                and all(isinstance(item, dict) and self._name_of(item) for item in value[:_LOOKED])
            )
        if not isinstance(value, dict) or not value:
            return False
        return self._name_of(value) is not None or (
            depth > 1 and any(self._holds(inner, depth - 1) for inner in list(value.values())[:_LOOKED])
        )

    def _short(self, said: dict[str, Any], pointer: str) -> dict[str, Any]:
        """As much of it as each record can hold, by its order."""
        found: dict[str, Any] = {}
        size = 0
        for key, value in said.items():
            if value in (None, "", [], {}):
                continue
            if size + len(encoded(value)) > _MOST_AROUND:
                self.left.append(f"{pointer}/{escape(key)}")
                continue
            size += len(encoded(value))
            found[key] = value
        return found
