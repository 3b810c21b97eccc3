"""`client.views`: filters of trajectories that a project keeps under names."""

from dataclasses import field
from datetime import datetime
from typing import Any

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, given, list_operation, operation, read_nothing
from touchstone_client.filters import FilterValue, filter_query
from touchstone_client.listings import Pages


@api_object
class SavedView(ApiObject):
    """filter: what `client.trajectories.list` and other calls take. conditions: the same as a mapping."""

    id: int
    name: str
    filter: str = ""
    conditions: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None

    def __str__(self) -> str:
        return self.name


class SavedViews(Calls[DriverT]):
    """Scope `ingest`."""

    @operation
    def create(self, name: str, filter: FilterValue) -> Request[SavedView]:
        """filter: as the trajectory list's address has it, or a mapping of conditions."""
        body = {"name": name, "filter": filter_query(filter)}
        return Request("POST", self._path("views"), ObjectReader(SavedView), json=body)

    @operation
    def get(self, view: int | SavedView) -> Request[SavedView]:
        return Request("GET", self._path("views", _number(view)), ObjectReader(SavedView))

    @operation
    def change(
        self, view: int | SavedView, *, name: str | None = None, filter: FilterValue | None = None
    ) -> Request[SavedView]:
        """What is left out stays."""
        body = given(name=name, filter=filter_query(filter))
        return Request("PATCH", self._path("views", _number(view)), ObjectReader(SavedView), json=body)

    @operation
    def delete(self, view: int | SavedView) -> Request[None]:
        return Request("DELETE", self._path("views", _number(view)), read_nothing)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[SavedView]:
        """Newest first."""
        return Pages(self._path("views"), ObjectReader(SavedView), page_size=page_size)


def _number(view: int | SavedView) -> int:
    return view.id if isinstance(view, SavedView) else view
