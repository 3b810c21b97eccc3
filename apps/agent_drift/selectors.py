"""Scores by agent version, each compared with the reference version of its agent: the oldest, or a chosen one.

A score is a yes or no of a trajectory: its outcome, or a fact that metrics and judges found of it (bad below 0).
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import TruncDate

from apps.accounts.models import AuditEvent, Project
from apps.agent_drift.references import chosen_references
from apps.agent_drift.sequential_tests import (
    ALPHA,
    ShareCount,
    drift_log_e_value,
    is_worse,
    share_interval,
)
from apps.trajectories.models import Trajectory, TrajectoryFact

OUTCOME = "failed outcome"
VERB = "agent.drifted"  # of alerts in the audit trail
LEAST_REFERENCE = 30  # trajectories of the reference with the score
MOST_SCORES = 50  # names of facts that are compared, those with most trajectories


@dataclass(frozen=True, slots=True)
class VersionScore:
    """reference_version: the oldest of the agent, or the chosen one. count: bad and known trajectories. later: the same
    of all versions after the reference up to this one. alpha: of this score of this version. is_earlier: the version is
    older than the reference, and not tested. None of log_e_value: too few trajectories in the reference."""

    agent_name: str
    agent_version: str
    score: str
    since: datetime
    count: ShareCount
    later: ShareCount
    reference: ShareCount
    reference_version: str
    alpha: float
    is_reference: bool
    is_earlier: bool = False

    @property
    def name(self) -> str:
        return f"{self.agent_name or 'unknown'} {self.agent_version}".strip()

    @property
    def share(self) -> float | None:
        return self.count.share

    @property
    def interval(self) -> tuple[float, float]:
        return share_interval(self.count)

    @property
    def is_tested(self) -> bool:
        return not (self.is_reference or self.is_earlier) and self.reference.trials >= LEAST_REFERENCE

    @property
    def log_e_value(self) -> float | None:
        """The larger one of this version, and of all versions since the reference, which finds a slow drift."""
        if not self.is_tested:
            return None
        return max(
            drift_log_e_value(count, self.reference, alpha=self.alpha) for count in (self.count, self.later)
        )

    @property
    def has_drifted(self) -> bool:
        return self.is_tested and any(
            is_worse(count, self.reference, alpha=self.alpha) for count in (self.count, self.later)
        )

    @property
    def state(self) -> str:
        if self.is_reference:
            return "reference"
        if self.is_earlier:
            return "before the reference"
        if not self.is_tested:
            return f"reference below {LEAST_REFERENCE}"
        return "worse" if self.has_drifted else "not worse"


def version_scores(project: Project, agent: str | None = None) -> list[VersionScore]:
    """Of agents with several versions: by agent, score and version, the oldest first. agent: the name of one; all where
    None."""
    since = _first_seen(project)
    counts: dict[tuple[str, str], dict[str, ShareCount]] = defaultdict(dict)
    for name, version, score, count in [*_outcomes(project), *_facts(project)]:
        if len(since.get(name, {})) > 1:
            counts[name, score][version] = count
    scores_by_agent: dict[str, int] = defaultdict(int)
    for name, _ in counts:
        scores_by_agent[name] += 1
    chosen = chosen_references(project)
    return [
        row
        for (name, score), by_version in sorted(counts.items())
        if agent is None or name == agent
        for row in _scores(
            name, score, by_version, since[name], chosen.get(name), ALPHA / (2 * scores_by_agent[name])
        )
    ]


def _scores(
    name: str,
    score: str,
    by_version: dict[str, ShareCount],
    since: dict[str, datetime],
    chosen: str | None,
    alpha: float,
) -> Iterable[VersionScore]:
    """alpha: two tests of each version share the chance of a false alarm, and so do the scores of an agent."""
    ordered = sorted(by_version, key=lambda version: since[version])
    reference = chosen if chosen in since else ordered[0]
    assert reference is not None
    later = ShareCount()
    for version in ordered:
        is_later = version != reference and since[version] >= since[reference]
        later = later + by_version[version] if is_later else later
        yield VersionScore(
            agent_name=name,
            agent_version=version,
            score=score,
            since=since[version],
            count=by_version[version],
            later=later,
            reference=by_version.get(reference, ShareCount()),
            reference_version=reference,
            alpha=alpha,
            is_reference=version == reference,
            is_earlier=since[version] < since[reference],
        )


@dataclass(frozen=True, slots=True)
class AgentVersions:
    """versions: the oldest first. reference: what is compared with. is_chosen: someone chose it."""

    agent_name: str
    versions: list[str]
    reference: str
    is_chosen: bool


def list_agent_versions(project: Project) -> list[AgentVersions]:
    """Of agents with several versions, by name."""
    chosen = chosen_references(project)
    found = []
    for name, since in sorted(_first_seen(project).items()):
        versions = sorted(since, key=lambda version: since[version])
        if len(versions) > 1:
            is_chosen = chosen.get(name) in since
            reference = chosen[name] if is_chosen else versions[0]
            found.append(AgentVersions(name, versions, reference, is_chosen))
    return found


@dataclass(frozen=True, slots=True)
class ScoreDay:
    """count: trajectories that were imported on the day (UTC)."""

    day: date
    agent_version: str
    count: ShareCount


def score_series(project: Project, agent: str, score: str) -> list[ScoreDay]:
    """By day and version, the oldest first; only days with trajectories that have the score."""
    found: list[tuple[date, str, int, int]]
    if score == OUTCOME:
        rows = Trajectory.objects.filter(project=project, agent_name=agent, success__isnull=False)
        days = rows.order_by().values("agent_version", day=TruncDate("created_at", tzinfo=UTC))
        days = days.annotate(bad=Count("pk", filter=Q(success=False)), known=Count("pk"))
        found = list(days.values_list("day", "agent_version", "bad", "known"))
    else:
        facts = TrajectoryFact.objects.filter(project=project, name=score, trajectory__agent_name=agent)
        by_day = facts.order_by().values(
            version=F("trajectory__agent_version"), day=TruncDate("trajectory__created_at", tzinfo=UTC)
        )
        by_day = by_day.annotate(bad=Count("pk", filter=Q(value__lt=0)), known=Count("pk"))
        found = list(by_day.values_list("day", "version", "bad", "known"))
    return [
        ScoreDay(day, version, ShareCount(bad, known))
        for day, version, bad, known in sorted(found, key=lambda row: row[:2])
    ]


def list_drift_alerts(project: Project) -> QuerySet[AuditEvent]:
    """Newest first, as the audit trail has them."""
    return AuditEvent.objects.filter(project=project, verb=VERB).order_by("-pk")


def _first_seen(project: Project) -> dict[str, dict[str, datetime]]:
    rows = (
        Trajectory.objects.filter(project=project)
        .order_by()
        .values("agent_name", "agent_version")
        .annotate(since=Min("created_at"))
    )
    found: dict[str, dict[str, datetime]] = defaultdict(dict)
    for name, version, since in rows.values_list("agent_name", "agent_version", "since"):
        found[name][version] = since
    return found


def _outcomes(project: Project) -> Iterable[tuple[str, str, str, ShareCount]]:
    rows = (
        Trajectory.objects.filter(project=project, success__isnull=False)
        .order_by()
        .values("agent_name", "agent_version")
        .annotate(bad=Count("pk", filter=Q(success=False)), known=Count("pk"))
    )
    for name, version, bad, known in rows.values_list("agent_name", "agent_version", "bad", "known"):
        yield name, version, OUTCOME, ShareCount(bad, known)


def _facts(project: Project) -> Iterable[tuple[str, str, str, ShareCount]]:
    facts = TrajectoryFact.objects.filter(project=project)
    names = facts.order_by().values("name").annotate(count=Count("pk")).order_by("-count", "name")
    kept = [row["name"] for row in names[:MOST_SCORES]]
    rows = (
        facts.filter(name__in=kept)
        .order_by()
        .values("name", version_name=F("trajectory__agent_name"), version=F("trajectory__agent_version"))
        .annotate(bad=Count("pk", filter=Q(value__lt=0)), known=Count("pk"))
    )
    for row in rows:
        yield row["version_name"], row["version"], row["name"], ShareCount(row["bad"], row["known"])
