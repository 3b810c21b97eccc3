"""Which version last scored each policy run: a reward that changes within one is announced."""

from collections import OrderedDict
from dataclasses import dataclass, field

RunKey = tuple[str, str, str]  # project, endpoint, policy run
_MOST = 10_000


@dataclass(eq=False, slots=True)
class RunVersions:
    """On the event loop only, and of this process. The runs that asked longest ago are forgotten first."""

    _last: OrderedDict[RunKey, int] = field(default_factory=OrderedDict)

    def change(self, key: RunKey, version: int) -> int | None:
        """Note the version that answered. The one before it, where that was another."""
        before = self._last.get(key)
        self._last[key] = version
        self._last.move_to_end(key)
        while len(self._last) > _MOST:
            self._last.popitem(last=False)
        return before if before != version else None


def change_warning(run: str, before: int, version: int) -> str:
    """As the value of a header: ASCII only."""
    return f"the version changed from {before} to {version} within the run {run!a}; send `version` to keep to one"
