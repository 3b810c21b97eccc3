"""`client.reward_studies`: weights of components fitted to feedback, and analyses of a reward. Scope `admin`."""

from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar

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
    read_nothing,
)
from touchstone_client.jobs import JobProgress, wait_for
from touchstone_client.listings import Pages
from touchstone_client.progress import Progress


@api_object
class RewardStudy(ApiObject):
    """number: within the project. kind: weights or analysis. source: what it is of, a filter, dataset or campaign.
    result: once it has succeeded. fitted_spec: of weights, the spec with those that were fitted; `endpoints.put` takes
    it."""

    id: int
    number: int = 0
    kind: str = ""
    state: str = ""
    endpoint: str | None = None
    source: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    progress: JobProgress = JobProgress()
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    fitted_spec: dict[str, Any] | None = None
    created: datetime | None = None
    finished: datetime | None = None

    HIDDEN: ClassVar[tuple[str, ...]] = ("spec", "options", "result", "fitted_spec")


class RewardStudies(Calls[DriverT]):
    @operation
    def start(
        self,
        kind: str,
        *,
        endpoint: str | None = None,
        spec: dict[str, Any] | None = None,
        filter: str | None = None,
        dataset: str | None = None,
        campaign: str | None = None,
        sample: int | None = None,
        feedback: str | None = None,
        penalty: str | None = None,
        allow_negative: bool | None = None,
        probes: bool | None = None,
    ) -> Request[RewardStudy]:
        """kind: `weights` or `analysis`. endpoint: whose active revision is studied, unless a spec is given. One of
        filter, dataset and campaign chooses the trajectories; none of them is all. sample: trajectories scored at most
        (200). feedback: what weights are fitted to: `auto`, `comparisons`, `ratings`, `outcomes`, or `policy`, the
        outcome of a policy that maximises the reward. penalty: `l1` or `l2`. probes: of an analysis, whether changed
        copies are scored too."""
        body = {
            "kind": kind,
            **given(
                endpoint=endpoint,
                spec=spec,
                filter=filter,
                dataset=dataset,
                campaign=campaign,
                sample=sample,
                feedback=feedback,
                penalty=penalty,
                allow_negative=allow_negative,
                probes=probes,
            ),
        }
        return Request("POST", self._path("reward-studies"), ObjectReader(RewardStudy), json=body)

    @operation
    def get(self, study: int | RewardStudy) -> Request[RewardStudy]:
        return Request("GET", self._study(study), ObjectReader(RewardStudy))

    @operation
    def cancel(self, study: int | RewardStudy) -> Request[RewardStudy]:
        return Request("POST", self._study(study, "cancel"), ObjectReader(RewardStudy))

    @operation
    def delete(self, study: int | RewardStudy) -> Request[None]:
        """One that has ended."""
        return Request("DELETE", self._study(study), read_nothing)

    @flow_operation
    def wait(
        self, study: int | RewardStudy, *, timeout: float | None = None, progress: Progress = False
    ) -> Flow[RewardStudy]:
        """Wait until it ends. Raises JobFailed unless that succeeded, TimeoutError after `timeout` seconds."""
        request = Request("GET", self._study(study), ObjectReader(RewardStudy))
        return wait_for(request, name=f"reward study {_key(study)}", timeout=timeout, progress=progress)

    @list_operation
    def list(self, *, page_size: int | None = None) -> Pages[RewardStudy]:
        """Newest first."""
        return Pages(self._path("reward-studies"), ObjectReader(RewardStudy), page_size=page_size)

    def _study(self, study: int | RewardStudy, *rest: str) -> str:
        return self._path("reward-studies", _key(study), *rest)


def _key(study: int | RewardStudy) -> int:
    return study if isinstance(study, int) else study.id
