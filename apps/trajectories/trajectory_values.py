"""The values of a trajectory, in which `field_coverage` looks for those of the document it was read from."""

from collections.abc import Iterable
from typing import Any, Literal

from workers.schema import Trajectory

Use = Literal["read", "kept", "dropped"]
_SHORT = 40  # characters of a text that is looked for by its key too
_SHORTEST = 8  # characters of a text that is looked for within others
_MOST_SCANNED = 50_000_000  # characters, in looking for texts within others, of one document


class TrajectoryValues:
    """The values of a trajectory."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.kept: set[str] = set()
        self.read_pairs: set[tuple[str, Any]] = set()
        self.kept_pairs: set[tuple[str, Any]] = set()
        self.kept_ids: set[int] = set()
        self._texts: dict[str, str] = {}
        self._lines: frozenset[str] | None = None
        self._left = _MOST_SCANNED
        self.has_numbers_as_text = False

    @classmethod
    def of_trajectory(cls, trajectory: Trajectory) -> "TrajectoryValues":
        found = cls()
        task = trajectory.task
        found._read(task.id, task.instruction, task.reference, trajectory.id, trajectory.agent)
        found._read(trajectory.agent_version)
        found._keep(task.metadata)
        found._keep(trajectory.metadata)
        for step in trajectory.steps:
            found._read(step.reasoning)
            found._parts(step.message)
            for call in step.tool_calls:
                found._read(call.name, call.id, call.arguments_text)
                found._collect(call.arguments, "", found.read, found.read_pairs, None)
                found._keep(call.extra)
            for result in step.observation:
                found._read(result.call_id)
                found._parts(result.content)
                found._keep(result.extra)
            found._collect(step.metrics, "", found.read, found.read_pairs, None)
            found._keep(step.extra)
        return found

    @classmethod
    def of_values(cls, value: Any) -> "TrajectoryValues":
        found = cls()
        found.has_numbers_as_text = True
        found._collect(value, "", found.read, found.read_pairs, None)
        return found

    def use_of_text(self, text: str, key: str) -> Use | None:
        """read, kept; None where the text is in neither. Short texts are kept only under their key: the same word may
        be there for another reason."""
        if text in self.read:
            return "read"
        if (key, text) in self.kept_pairs if len(text) <= _SHORT else text in self.kept:
            return "kept"
        if len(text) < _SHORTEST:
            return None
        if self._is_within(text, "read") or self._has_lines(text):
            return "read"
        return "kept" if len(text) > _SHORT and self._is_within(text, "kept") else None

    def _is_within(self, text: str, where: Literal["read", "kept"]) -> bool:
        if where not in self._texts:
            self._texts[where] = "\x00".join(getattr(self, where))
        self._left -= len(self._texts[where])
        return self._left > 0 and text in self._texts[where]

    def _has_lines(self, text: str) -> bool:
        """Whether all lines of a text are among those that are read: it was taken apart. Fences do not count."""
        if self._lines is None:
            self._lines = frozenset(line.strip() for each in self.read for line in each.splitlines())
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith("```")]
        return bool(lines) and all(line in self._lines for line in lines)

    def _read(self, *texts: str | None) -> None:
        self.read.update(text for text in texts if text)

    def _parts(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self._read(part.text, part.source, part.media_type)
            self._collect(part.extra, "", self.kept, self.kept_pairs, None)

    def _keep(self, value: Any) -> None:
        self._collect(value, "", self.kept, self.kept_pairs, self.kept_ids)

    def _collect(
        self, value: Any, key: str, texts: set[str], pairs: set[tuple[str, Any]], ids: set[int] | None
    ) -> None:
        if isinstance(value, str):
            texts.add(value)
            if len(value) <= _SHORT:
                pairs.add((key, value))
        elif isinstance(value, dict):
            if ids is not None:
                ids.add(id(value))
            if ids is None:
                texts.update(map(str, value))
            for name, item in value.items():
                self._collect(item, str(name), texts, pairs, ids)
        elif isinstance(value, list | tuple):
            if ids is not None:
                ids.add(id(value))
            for item in value:
                self._collect(item, key, texts, pairs, ids)
        elif value is not None:
            pairs.add((key, value))
            if self.has_numbers_as_text:
                texts.add(str(value))
