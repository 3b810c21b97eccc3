"""`client.tasks`: the tasks of a project in the order to run them. Scope `ingest`."""

from typing import Any

from touchstone_client.calls import Calls, DriverT, list_operation
from touchstone_client.filters import FilterValue, filter_query
from touchstone_client.listings import Lines


class Tasks(Calls[DriverT]):
    @list_operation
    def export(
        self,
        order: str = "learnability",
        *,
        only: str = "all",
        filter: FilterValue | None = None,
        most: int | None = None,
    ) -> Lines[dict[str, Any]]:
        """Tasks with their difficulty, learnability, expected success with its 90 % interval, outcomes, and
        `replay`, the keys of failed trajectories. order: difficulty (easiest first), learnability (where the agent
        succeeds about half of the time first) or uncertainty (least known first). only: all, failures or
        untried. filter: of the trajectories whose outcomes count, as of `trajectories.list`. `.save(path)` writes them
        to a file."""
        params = {"order": order, "only": only, "filter": filter_query(filter), "most": most}
        return Lines(self._path("tasks", "export"), dict, params)
