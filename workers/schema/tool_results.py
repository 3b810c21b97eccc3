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
class _Waiting:
    """Calls in the order they were made; `first` looks at each once."""

    calls: list[MadeCall] = field(default_factory=list)
    start: int = 0

    def first(self) -> MadeCall | None:
        """The oldest unanswered one."""
        while self.start < len(self.calls) and self.calls[self.start].answered:
            self.start += 1
        return self.calls[self.start] if self.start < len(self.calls) else None


@dataclass(slots=True)
class _Named:
    """The calls of one name. steps: those of each step; newest: of all."""

    newest: MadeCall
    steps: list[_Waiting] = field(default_factory=list)

    def first(self) -> MadeCall | None:
        """The oldest unanswered call in the newest step that has one."""
        while self.steps:
            if (call := self.steps[-1].first()) is not None:
                return call
            self.steps.pop()
        return None


@dataclass(slots=True)
class CallPairing:
    """The calls made so far. `add_step` for every step that may call, in order; `find_call` for every result.

    A result answers the call with its id (the newest, where an id was used again); else the oldest unanswered call of
    that name, in the newest step that has one; else the oldest unanswered call of the last step; else none: an orphan.
    """

    _by_id: dict[str, _Waiting] = field(default_factory=dict)
    _by_name: dict[str, _Named] = field(default_factory=dict)
    _last: _Waiting = field(default_factory=_Waiting)

    def add_step(self, step: int, calls: Iterable[ToolCall]) -> None:
        """step: the place of the step, given back by `find_call`."""
        made = [MadeCall(step, place, call.id or None, call.name) for place, call in enumerate(calls)]
        self._last = _Waiting(made)
        for call in made:
            if call.id:
                same = self._by_id.get(call.id)
                if same is None or same.calls[0].step != step:
                    same = self._by_id[call.id] = _Waiting()
                same.calls.append(call)
            named = self._by_name.setdefault(call.name, _Named(call))
            if not named.steps or named.steps[-1].calls[0].step != step:
                named.steps.append(_Waiting())
            named.newest = call
            named.steps[-1].calls.append(call)

    def find_call(self, call_id: str | None, name: str | None = None) -> MadeCall | None:
        """The call that a result answers; None for an orphan."""
        call = self._find(call_id, name)
        if call is not None:
            call.answered = True
        return call

    def find_function(self, name: str) -> MadeCall | None:
        """The newest call of that name: how results of `function_call`, which has no ids, are tied."""
        named = self._by_name.get(name)
        if named is None:
            return None
        named.newest.answered = True
        return named.newest

    def _find(self, call_id: str | None, name: str | None) -> MadeCall | None:
        same = self._by_id.get(call_id) if call_id else None
        if same is not None:
            return same.first() or same.calls[-1]
        named = self._by_name.get(name or "")
        return (named.first() if named is not None else None) or self._last.first()


def with_results(step: Step, answers: Sequence[tuple[ObservationResult, MadeCall]]) -> Step:
    """The step with results of its own calls."""
    before = call_places(step)
    answered = replace(step, observation=(*step.observation, *(result for result, _ in answers)))
    return with_places(answered, [*before, *(call.place for _, call in answers)])


def with_places(step: Step, places: Sequence[int | None]) -> Step:
    """The step with the place of the call of each result, written where neither id nor order tells it."""
    told = call_places(step)
    if told == list(places):
        return step
    placed = (
        result if wanted in (None, place) else replace(result, extra=result.extra | {_PLACE: wanted})
        for result, place, wanted in zip(step.observation, told, places, strict=True)
    )
    return replace(step, observation=tuple(placed))


def call_places(step: Step) -> list[int | None]:
    """For each result of the step, the place of the call that it answers; None in a step without calls."""
    if not step.tool_calls:
        return [None] * len(step.observation)
    last = len(step.tool_calls) - 1
    by_id = {call.id: place for place, call in enumerate(step.tool_calls) if call.id}
    found: list[int | None] = []
    for index, result in enumerate(step.observation):
        named = result.extra.get(_PLACE)
        is_named = isinstance(named, int) and 0 <= named <= last
        found.append(named if is_named else by_id.get(result.call_id or "", min(index, last)))
    return found


def has_orphans(steps: Sequence[Step]) -> bool:
    return any(step.extra.get(ORPHAN) is True for step in steps)
