"""Work of several callers in the order of virtual finish times, so that a long queue of one caller delays no other.

Self-clocked fair queueing (Golestani, INFOCOM 1994), which gives what deficit round robin does (Shreedhar & Varghese,
1996) without rounds: each piece of work gets the time at which it would end if all callers were served in parallel, and
the earliest is taken. Projects share equally, the keys of a project share its part. The work of one caller alone stays
in the order it came.

Room in the queue is shared by dynamic thresholds (Choudhury & Hahne, 1998): one caller may fill the limit, and another
one still finds half of it free, a third one a quarter.
"""

from dataclasses import dataclass, field

Caller = tuple[str, str]  # a project, and a key of it
NO_CALLER: Caller = ("", "")
WARM_UP: Caller = ("", "warm-up")


@dataclass(eq=False, slots=True)
class FairOrder:
    """Not thread-safe. queued: tokens of all callers."""

    queued: int = 0
    _now: float = 0.0
    _last: dict[Caller, float] = field(default_factory=dict)
    _tokens: dict[Caller, int] = field(default_factory=dict)  # that wait
    _entries: dict[Caller, int] = field(default_factory=dict)
    _keys: dict[str, int] = field(default_factory=dict)  # of a project, that have something waiting

    def waiting(self, caller: Caller) -> int:
        """The caller's tokens."""
        return self._tokens.get(caller, 0)

    def has_room(self, caller: Caller, new: int, limit: int) -> bool:
        """What is above the limit gets its turn when nothing waits."""
        return not self.queued or self.waiting(caller) + new <= min(limit, 2 * limit - self.queued)

    def put(self, caller: Caller, tokens: int) -> float:
        """Its finish time: smaller is earlier."""
        project, _ = caller
        if caller not in self._entries:
            self._entries[caller] = 0
            self._keys[project] = self._keys.get(project, 0) + 1
        self._entries[caller] += 1
        self._tokens[caller] = self._tokens.get(caller, 0) + tokens
        self.queued += tokens
        start = max(self._now, self._last.get(caller, 0.0))
        self._last[caller] = start + max(tokens, 1) * self._keys[project]
        return self._last[caller]

    def take(self, caller: Caller, tokens: int, turn: float) -> None:
        """Work is taken from the queue."""
        self._now = max(self._now, turn)
        self._tokens[caller] -= tokens
        self._entries[caller] -= 1
        self.queued -= tokens
        if not self._entries[caller]:
            self._drop_caller(caller)

    def _drop_caller(self, caller: Caller) -> None:
        project, _ = caller
        del self._entries[caller], self._tokens[caller]
        self._keys[project] -= 1
        if not self._keys[project]:
            del self._keys[project]
        if not self._entries:  # nothing waits: start again, so that numbers stay small
            self._now = 0.0
            self._last.clear()
