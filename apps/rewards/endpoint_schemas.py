"""Bodies and answers of the calls of endpoints (api.py)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema

from apps.core.http.document_types import choices, described_struct
from apps.rewards.item_schemas import EndpointSpecDocument
from apps.rewards.models import Release
from apps.rewards.releases import ReleaseRules

ReleaseRulesDocument = Annotated[dict[str, Any], described_struct(ReleaseRules)]
ReleaseStage = Annotated[Release.Stage, choices(Release.Stage)]
TrafficSpan = Literal["day", "week", "month"]
TrafficColumn = Literal["version", "caller", "run", "policy_version"]


WHY_REASON = "required where a check of the model failed: why it should serve all the same"


class RollbackIn(Schema):
    to: int | None = None
    reason: str = Field("", max_length=2000, description=WHY_REASON)


class StandbyIn(Schema):
    """revision: null ends it, and the revision is unloaded."""

    revision: int | None
    reason: str = Field("", max_length=2000, description=WHY_REASON)


class ReleaseIn(Schema):
    """share: of what is asked that a canary answers."""

    revision: int
    stage: str = "shadow"
    share: float = 0.0
    rules: ReleaseRulesDocument = Field(
        default_factory=dict, description="what the candidate must meet; by default the defaults"
    )
    automatic: bool = False
    reason: str = Field("", max_length=2000, description=WHY_REASON)


class DeployIn(Schema):
    """model: `name@version`, or the newest of a name. stage, share, automatic: as of PUT."""

    model: str
    stage: str | None = None
    share: float = 0.0
    automatic: bool = False
    reason: str = Field("", max_length=2000, description=WHY_REASON)


class CanaryIn(Schema):
    share: float
    reason: str = Field("", max_length=2000, description=WHY_REASON)


class ReasonIn(Schema):
    reason: str = ""


class SwitchOffIn(Schema):
    """reason: shown to callers."""

    reason: str


class RevisionOut(Schema):
    """reason: why it was deployed although a check of its model failed."""

    number: int
    spec: EndpointSpecDocument
    reason: str
    created: datetime


class EndpointOut(Schema):
    """active: the revision that is served, with its spec. standby: one that is kept loaded and warm."""

    endpoint: str
    project: str
    active: int | None
    standby: int | None
    spec: EndpointSpecDocument | None
    switched_off: bool
    switched_off_reason: str


class EndpointPage(Schema):
    items: list[EndpointOut]
    next: str | None


class EndpointReport(EndpointOut):
    revisions: list[RevisionOut]


class ChangedEndpointOut(EndpointOut):
    """revision: the one that was made, or is active again."""

    revision: RevisionOut


class ReleaseVerdictOut(Schema):
    says: Literal["passes", "fails", "waits"]
    reason: str


class ReleaseOut(Schema):
    """against: the revision that it is compared with. verdict: null once it ended."""

    revision: int
    against: int
    stage: ReleaseStage
    share: float
    automatic: bool
    rules: ReleaseRulesDocument
    reason: str
    started: datetime
    ended: datetime | None
    verdict: ReleaseVerdictOut | None


class UsageCountsOut(Schema):
    """Rewards on the reward scale; milliseconds within the service. Null where nothing was scored."""

    requests: int
    items: int
    tokens: int
    cached_tokens: int
    repeated: int
    refused: int
    overloaded: int
    failed: int
    uncertain: int
    truncated: int
    reward_mean: float | None
    reward_std: float | None
    milliseconds_p50: float | None
    milliseconds_p95: float | None


class FlagUsageOut(Schema):
    """share: of the scored items of the version."""

    flag: str
    version: int
    items: int
    share: float


class FlagDayOut(Schema):
    day: str = Field(description="YYYY-MM-DD, in UTC")
    version: int
    flag: str
    items: int


class UsageOut(Schema):
    endpoint: str
    span: TrafficSpan
    total: UsageCountsOut
    by: dict[str, UsageCountsOut] = Field(description="by the chosen column, most requests first")
    not_listed: int
    flags: list[FlagUsageOut]
    flags_by_day: list[FlagDayOut]
