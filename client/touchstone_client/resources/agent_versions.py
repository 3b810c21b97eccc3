"""`client.agent_versions`: whether a version of an agent is worse than the reference version. Scope `reward` or
`admin`."""

from datetime import datetime
from typing import ClassVar

from touchstone_client.api_objects import ApiObject, ObjectReader, api_object
from touchstone_client.calls import Calls, DriverT, Request, given, list_operation, operation
from touchstone_client.listings import Pages


@api_object
class AgentVersionList(ApiObject):
    """versions: the oldest first. reference: the one that later ones are compared with. is_chosen: someone chose it."""

    agent: str
    versions: tuple[str, ...] = ()
    reference: str = ""
    is_chosen: bool = False


@api_object
class VersionScore(ApiObject):
    """A yes or no of the trajectories of a version. share: the bad ones of all. log_e_value: evidence that the version
    is worse than the reference, None where it is not tested."""

    agent: str
    version: str = ""
    score: str = ""
    state: str = ""
    bad: int = 0
    trajectories: int = 0
    share: float | None = None
    interval: tuple[float, ...] = ()
    reference: str = ""
    reference_share: float | None = None
    log_e_value: float | None = None
    since: datetime | None = None

    @property
    def is_worse(self) -> bool:
        return self.state == "worse"


@api_object
class AgentVersionsReport(ApiObject):
    agents: tuple[AgentVersionList, ...] = ()
    scores: tuple[VersionScore, ...] = ()

    HIDDEN: ClassVar[tuple[str, ...]] = ("scores",)


@api_object
class DriftAlert(ApiObject):
    """version: the agent and its version."""

    id: int
    raised: datetime | None = None
    version: str = ""
    score: str = ""
    share: float = 0.0
    trajectories: int = 0
    reference: str = ""
    reference_share: float = 0.0
    log_e_value: float = 0.0


@api_object
class ScoreDay(ApiObject):
    """Trajectories that were imported on a day: 2026-01-31, in UTC."""

    day: str
    version: str = ""
    bad: int = 0
    trajectories: int = 0


@api_object
class ScoreSeries(ApiObject):
    agent: str
    score: str = ""
    days: tuple[ScoreDay, ...] = ()


class AgentVersions(Calls[DriverT]):
    @operation
    def compare(self, agent: str | None = None) -> Request[AgentVersionsReport]:
        """The versions of agents, and each of their scores against the reference. agent: the name of one."""
        return Request(
            "GET", self._path("agent-versions"), ObjectReader(AgentVersionsReport), params=given(agent=agent)
        )

    @operation
    def choose_reference(self, agent: str, version: str | None) -> Request[AgentVersionsReport]:
        """Compare later versions with this one; with the oldest where None. Scope `admin`."""
        path = self._path("agent-versions", "reference")
        body = {"agent": agent, "version": version}
        return Request("PUT", path, ObjectReader(AgentVersionsReport), json=body)

    @operation
    def series(self, agent: str, score: str = "failed outcome") -> Request[ScoreSeries]:
        """A score by day and version."""
        path = self._path("agent-versions", "series")
        params = {"agent": agent, "score": score}
        return Request("GET", path, ObjectReader(ScoreSeries), params=params)

    @list_operation
    def alerts(self, *, page_size: int | None = None) -> Pages[DriftAlert]:
        """Of versions that are worse, newest first."""
        path = self._path("agent-versions", "alerts")
        return Pages(path, ObjectReader(DriftAlert), page_size=page_size)
