"""`client.datasets`: dataset versions, frozen, waited for and exported."""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import (
    Calls,
    DriverT,
    Flow,
    Request,
    flow_operation,
    given,
    list_operation,
    operation,
)
from touchstone_client.filters import FilterValue, filter_query
from touchstone_client.jobs import wait_for
from touchstone_client.listings import Lines, Pages
from touchstone_client.progress import Progress


@api_object
class DatasetVersion(ApiObject):
    """name: `project/name@version`, which calls that need a dataset take. records: number by kind."""

    name: str
    state: str
    hash: str | None = None
    number: int = 0
    records: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)
    usable_pairs: int = 0
    error: str = ""
    created: datetime | None = None

    def __str__(self) -> str:
        return self.name


class Datasets(Calls[DriverT]):
    @operation
    def freeze(
        self,
        name: str,
        *,
        campaigns: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        origins: Sequence[str] | None = None,
        annotators: Sequence[str] | None = None,
        since: datetime | str | None = None,
        filter: FilterValue | None = None,
        adjudication: str | None = None,
        test_tasks: Sequence[str] | None = None,
        derived: Sequence[str] | None = None,
        shares: tuple[float, float, float] | None = None,
        seed: int | None = None,
    ) -> Request[DatasetVersion]:
        """Freeze the feedback there is into the next version, of which a worker writes the records: see `wait`.

        Scope `train`. Everything but the name narrows what is taken: campaigns, kinds, origins and annotators by name,
        what changed since a time. filter: only items whose trajectories all match, with the conditions of
        `client.trajectories.list`. adjudication: of adjudicated items the adjudication `instead`, `also` or `not`.
        test_tasks: ids of the tasks that form the test split. derived: `metric_scores`, `comment_steps`. shares: of
        training, validation and test.
        """
        lists = given(
            campaigns=campaigns,
            kinds=kinds,
            origins=origins,
            annotators=annotators,
            test_tasks=test_tasks,
            derived=derived,
            shares=shares,
        )
        body = {name: list(values) for name, values in lists.items()} | given(
            since=since.isoformat() if isinstance(since, datetime) else since,
            filter=filter_query(filter),
            adjudication=adjudication,
            seed=seed,
        )
        return Request("POST", self._path("datasets"), _read, json={"name": name, **body})

    @operation
    def get(self, dataset: str | DatasetVersion) -> Request[DatasetVersion]:
        """One version (`name@version`), or the newest frozen one (`name`). Scope `train`."""
        return Request("GET", self._path("datasets", own_name(dataset)), _read)

    @flow_operation
    def wait(
        self, dataset: str | DatasetVersion, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[DatasetVersion]:
        """Wait until it is frozen. Scope `train`.

        Raises JobFailed where it failed, TimeoutError after `timeout` seconds.
        """
        request = Request("GET", self._path("datasets", own_name(dataset)), _read)
        return wait_for(request, name=f"dataset {dataset}", timeout=timeout, progress=progress)

    @list_operation
    def export(
        self,
        dataset: str | DatasetVersion,
        format: str = "trl",
        *,
        split: str | None = None,
        accepted_by: str | None = None,
        criterion: str | None = None,
        threshold: float | None = None,
    ) -> Lines[dict[str, Any]]:
        """Its records in a format that trainers read, such as trl, openrlhf or jsonl.

        Scope `train`. split: train, validation or test; by default all. `.to_dataset()` is what TRL takes, and
        `.save(path)` writes the lines to a file as they arrive; of a format with several files, `.download(path)`
        writes the zip file. accepted_by, criterion, threshold: which trajectories formats for SFT take.
        """
        path = self._path("datasets", own_name(dataset), "export")
        rule = {"accepted_by": accepted_by, "criterion": criterion, "threshold": threshold}
        return Lines(path, dict, {"format": format, "split": split, **rule})

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[DatasetVersion]:
        """Newest first. Scope `train`."""
        return Pages(self._path("datasets"), _read, page_size=page_size)


_read = ObjectReader(DatasetVersion)


def own_name(name: object) -> str:
    """Without the project, which the address has: `name@version` of `project/name@version`."""
    return str(name).rpartition("/")[2]
