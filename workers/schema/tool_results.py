"""Which call a tool result answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from workers.schema.records import ToolCall

ORPHAN = "orphan"  # key of a step's extra: a tool result whose call is not in the trajectory


@dataclass(slots=True)
class _Call:
    step: int
    id: str | None
    name: str
    answered: bool = False


@dataclass(slots=True)
class CallPairing:
    """The calls made so far. `add_step` for every step that may call, in order; `find_call` for every result.

    A result answers the call with its id (the newest, where an id was used again); else the oldest unanswered call of
    that name, in the newest step that has one; else the oldest unanswered call of the last step; else none: an orphan.
    """

    _by_id: dict[str, list[_Call]] = field(default_factory=dict)
    _by_name: dict[str, list[_Call]] = field(default_factory=dict)
    _last: list[_Call] = field(default_factory=list)

    def add_step(self, step: int, calls: Iterable[ToolCall]) -> None:
        """step: the place of the step, given back by `find_call`."""
        self._last = [_Call(step, call.id or None, call.name) for call in calls]
        for call in self._last:
            if call.id:
                same = self._by_id.setdefault(call.id, [])
                if same and same[0].step != step:
                    same.clear()
                same.append(call)
            self._by_name.setdefault(call.name, []).append(call)

    def find_call(self, call_id: str | None, name: str | None = None) -> tuple[int, str | None] | None:
        """The step and the id of the call that a result answers; None for an orphan."""
        call = self._named(call_id, name)
        if call is None:
            return None
        call.answered = True
        return call.step, call.id

    def find_function(self, name: str) -> int | None:
        """The step of the newest call of that name: how results of `function_call`, which has no ids, are tied."""
        called = self._by_name.get(name)
        if not called:
            return None
        called[-1].answered = True
        return called[-1].step

    def _named(self, call_id: str | None, name: str | None) -> _Call | None:
        same = self._by_id.get(call_id) if call_id else None
        if same:
            return next((call for call in same if not call.answered), same[-1])
        waiting = [call for call in self._by_name.get(name or "", ()) if not call.answered]
        if waiting:
            return next(call for call in waiting if call.step == waiting[-1].step)
        return next((call for call in self._last if not call.answered), None)
