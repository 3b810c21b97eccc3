"""Scores by agent version, each compared with the first version of its agent.

A score is a yes or no of a trajectory: its outcome, or a fact that metrics and judges found of it (bad below 0).
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Min, Q

from apps.accounts.models import Project
from apps.agent_drift.sequential_tests import (
    ALPHA,
    ShareCount,
    drift_log_e_value,
    is_worse,
    share_interval,
)
from apps.trajectories.models import Trajectory, TrajectoryFact

OUTCOME = "failed outcome"
LEAST_REFERENCE = 30  # trajectories of the reference with the score
MOST_SCORES = 50  # names of facts that are compared, those with most trajectories


@dataclass(frozen=True, slots=True)
class VersionScore:
    """reference_version: the first of the agent. count: bad and known trajectories. later: the same of all versions
    after the reference up to this one. alpha: of this score of this version. None of log_e_value: too few trajectories
    in the reference."""

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
        return not self.is_reference and self.reference.trials >= LEAST_REFERENCE

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
        if not self.is_tested:
            return f"reference below {LEAST_REFERENCE}"
        return "worse" if self.has_drifted else "not worse"


def version_scores(project: Project) -> list[VersionScore]:
    """Of agents with several versions: by agent, score and version, the oldest first."""
    since = _first_seen(project)
    counts: dict[tuple[str, str], dict[str, ShareCount]] = defaultdict(dict)
    for name, version, score, count in [*_outcomes(project), *_facts(project)]:
        if len(since.get(name, {})) > 1:
            counts[name, score][version] = count
    scores_by_agent: dict[str, int] = defaultdict(int)
    for name, _ in counts:
        scores_by_agent[name] += 1
    found = []
    for (name, score), by_version in sorted(counts.items()):
        ordered = sorted(by_version, key=lambda version: since[name][version])
        reference, later = by_version[ordered[0]], ShareCount()
        for place, version in enumerate(ordered):
            later = later + by_version[version] if place else later
            # Two tests of each version share the chance of a false alarm, and so do the scores of an agent.
            alpha = ALPHA / (2 * scores_by_agent[name])
            found.append(
                VersionScore(
                    agent_name=name,
                    agent_version=version,
                    score=score,
                    since=since[name][version],
                    count=by_version[version],
                    later=later,
                    reference=reference,
                    reference_version=ordered[0],
                    alpha=alpha,
                    is_reference=place == 0,
                )
            )
    return found


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
