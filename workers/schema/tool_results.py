"""Which call a tool result answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from workers.schema.records import ObservationResult, Step, ToolCall

ORPHAN = "orphan"  # key of a step's extra: a tool result whose call is not in the trajectory
_PLACE = "call_place"  # key of a result's extra: the place of its call in the step, where neither id nor order tells it


@dataclass(slots=True)
class MadeCall:
    """step: that made it. place: among the step's calls."""

    step: int
    place: int
    id: str | None
    name: str
    answered: bool = False


@dataclass(slots=True)
class CallPairing:
    """The calls made so far. `add_step` for every step that may call, in order; `find_call` for every result.

    A result answers the call with its id (the newest, where an id was used again); else the oldest unanswered call of
    that name, in the newest step that has one; else the oldest unanswered call of the last step; else none: an orphan.
    """

    _by_id: dict[str, list[MadeCall]] = field(default_factory=dict)
    _by_name: dict[str, list[MadeCall]] = field(default_factory=dict)
    _last: list[MadeCall] = field(default_factory=list)

    def add_step(self, step: int, calls: Iterable[ToolCall]) -> None:
        """step: the place of the step, given back by `find_call`."""
        self._last = [MadeCall(step, place, call.id or None, call.name) for place, call in enumerate(calls)]
        for call in self._last:
            if call.id:
                same = self._by_id.setdefault(call.id, [])
                if same and same[0].step != step:
                    same.clear()
                same.append(call)
            self._by_name.setdefault(call.name, []).append(call)

    def find_call(self, call_id: str | None, name: str | None = None) -> MadeCall | None:
        """The call that a result answers; None for an orphan."""
        call = self._named(call_id, name)
        if call is not None:
            call.answered = True
        return call

    def find_function(self, name: str) -> MadeCall | None:
        """The newest call of that name: how results of `function_call`, which has no ids, are tied."""
        called = self._by_name.get(name)
        if not called:
            return None
        called[-1].answered = True
        return called[-1]

    def _named(self, call_id: str | None, name: str | None) -> MadeCall | None:
        same = self._by_id.get(call_id) if call_id else None
        if same:
            return next((call for call in same if not call.answered), same[-1])
        waiting = [call for call in self._by_name.get(name or "", ()) if not call.answered]
        if waiting:
            return next(call for call in waiting if call.step == waiting[-1].step)
        return next((call for call in self._last if not call.answered), None)


def with_result(step: Step, result: ObservationResult, call: MadeCall) -> Step:
    """The step with one more result, of this call of its own."""
    answered = replace(step, observation=(*step.observation, result))
    if call_place(answered, len(step.observation)) == call.place:
        return answered
    placed = replace(result, extra=result.extra | {_PLACE: call.place})
    return replace(step, observation=(*step.observation, placed))


def call_place(step: Step, index: int) -> int | None:
    """The place of the call that the step's observation `index` answers; None in a step without calls."""
    if not step.tool_calls:
        return None
    result, last = step.observation[index], len(step.tool_calls) - 1
    named = result.extra.get(_PLACE)
    if isinstance(named, int) and 0 <= named <= last:
        return named
    places = [place for place, call in enumerate(step.tool_calls) if call.id and call.id == result.call_id]
    return places[-1] if places else min(index, last)


def has_orphans(steps: Sequence[Step]) -> bool:
    return any(step.extra.get(ORPHAN) is True for step in steps)
