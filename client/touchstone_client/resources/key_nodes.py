"""`client.key_nodes`: what every trajectory of a task must reach, and which ones do. Scopes `feedback:read` and
`feedback:write`."""

import builtins
from datetime import datetime
from typing import Any, ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, given, list_operation, operation, read_nothing
from touchstone_client.listings import Pages


@api_object
class KeyNodes(ApiObject):
    """Of a task. nodes: {"name", and at least one of "tools" (with "when"), "url" and "text" (with "within")} each, and
    "expected", an observation. in_order: a node only counts after those before it. revision: grows with each change."""

    id: int
    task: str = ""
    nodes: tuple[dict[str, Any], ...] = ()
    in_order: bool = False
    revision: int = 0
    changed: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("nodes",)


@api_object
class KeyNodeCompletion(ApiObject):
    """What a trajectory reaches. share: of the nodes, 0 to 1. steps: for each node the first step that reaches it,
    counted from 0, or None. unexpected: places of nodes whose observation is another than the expected one."""

    trajectory: int
    share: float = 0.0
    steps: tuple[int | None, ...] = ()
    unexpected: tuple[int, ...] = ()


@api_object
class TrajectoryKeyNodes(ApiObject):
    """key_nodes: their id, None where the task has none. nodes: {"name", "step", "expected", "observed",
    "is_expected"} each."""

    key_nodes: int | None = None
    share: float | None = None
    nodes: tuple[dict[str, Any], ...] = ()


class KeyNodeLists(Calls[DriverT]):
    @operation
    def set(
        self, task: str, nodes: builtins.list[dict[str, Any]], *, in_order: bool = False
    ) -> Request[KeyNodes]:
        """Set the key nodes of a task, in place of those it has. task: its id."""
        body = {"task": task, "nodes": nodes, "in_order": in_order}
        return Request("POST", self._path("key-nodes"), ObjectReader(KeyNodes), json=body)

    @operation
    def get(self, key_nodes: int | KeyNodes) -> Request[KeyNodes]:
        return Request("GET", self._list(key_nodes), ObjectReader(KeyNodes))

    @operation
    def edit(
        self,
        key_nodes: int | KeyNodes,
        nodes: builtins.list[dict[str, Any]],
        *,
        in_order: bool | None = None,
    ) -> Request[KeyNodes]:
        """in_order: as it is where None."""
        body = {"nodes": nodes, **given(in_order=in_order)}
        return Request("PUT", self._list(key_nodes), ObjectReader(KeyNodes), json=body)

    @operation
    def delete(self, key_nodes: int | KeyNodes) -> Request[None]:
        return Request("DELETE", self._list(key_nodes), read_nothing)

    @operation
    def reached(self, trajectory: int) -> Request[TrajectoryKeyNodes]:
        """What one trajectory reaches, with the expected and the actual observations."""
        path = self._path("trajectories", trajectory, "key-nodes")
        return Request("GET", path, ObjectReader(TrajectoryKeyNodes))

    @list_operation
    def list(self, *, task: str | None = None, page_size: int | None = None) -> Pages[KeyNodes]:
        """Newest first. task: the id of one."""
        path = self._path("key-nodes")
        return Pages(path, ObjectReader(KeyNodes), params=given(task=task), page_size=page_size)

    @list_operation
    def completions(
        self, key_nodes: int | KeyNodes, *, page_size: int | None = None
    ) -> Pages[KeyNodeCompletion]:
        """Of the trajectories of the task."""
        path = self._list(key_nodes, "completions")
        return Pages(path, ObjectReader(KeyNodeCompletion), page_size=page_size)

    def _list(self, key_nodes: int | KeyNodes, *rest: str) -> str:
        key = key_nodes if isinstance(key_nodes, int) else key_nodes.id
        return self._path("key-nodes", key, *rest)
