"""What a clustering found, for its page and the API: its clusters with success rates, and the map."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from apps.core.share_interval import wilson_interval
from apps.semantic_search.models import ClusterMember, TrajectoryClustering

_EXAMPLES = 3
_MAPPED = 2000  # points of the map


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """terms: those that tell it apart. share: of all trajectories in the clustering. success: of those with a known
    outcome (`known`), with its 95 % interval (Wilson); None where none is known. typical: those next to its centre."""

    place: int
    terms: list[str]
    count: int
    share: float
    known: int
    success: float | None
    interval: tuple[float, float] | None
    typical: list[ClusterMember]

    @property
    def name(self) -> str:
        return ", ".join(self.terms) or f"Cluster {self.place + 1}"

    @property
    def query(self) -> str:
        """The filter that admits its trajectories."""
        return f"cluster={self.typical[0].clustering_id}.{self.place + 1}" if self.typical else ""


def summarise_clusters(clustering: TrajectoryClustering) -> list[ClusterSummary]:
    """The largest first; of trajectories that are still there."""
    found = clustering.result.get("clusters", [])
    members = clustering.members.values("cluster").order_by()
    counts = {
        row["cluster"]: row
        for row in members.annotate(
            count=Count("pk"),
            known=Count("pk", filter=Q(trajectory__success__isnull=False)),
            good=Count("pk", filter=Q(trajectory__success=True)),
        )
    }
    total = sum(row["count"] for row in counts.values())
    summaries = []
    for place, cluster in enumerate(found):
        row = counts.get(place)
        if row is None:
            continue
        typical = clustering.members.filter(cluster=place).select_related("trajectory__task")
        summaries.append(
            ClusterSummary(
                place=place,
                terms=cluster["terms"],
                count=row["count"],
                share=row["count"] / total,
                known=row["known"],
                success=row["good"] / row["known"] if row["known"] else None,
                interval=wilson_interval(row["good"], row["known"]) if row["known"] else None,
                typical=list(typical.order_by("distance", "pk")[:_EXAMPLES]),
            )
        )
    return summaries


def cluster_map(clustering: TrajectoryClustering) -> dict[str, Any]:
    """A chart of the trajectories in two dimensions, a series for each cluster."""
    clusters = {found.place: found.name for found in summarise_clusters(clustering)}
    points: dict[int, list[dict[str, Any]]] = {place: [] for place in clusters}
    members = clustering.members.select_related("trajectory__task").order_by("pk")[:_MAPPED]
    for member in members:
        name = f"{member.trajectory.task.external_id[:40]} ({member.trajectory_id})"
        points[member.cluster].append({"name": name, "value": [member.x, member.y]})
    return {
        "kind": "scatter",
        "x": {"name": "First principal component"},
        "y": {"name": "Second principal component"},
        "series": [
            {"name": f"{place + 1}: {name}", "points": points[place], "style": place}
            for place, name in clusters.items()
        ],
        "n": f"{sum(map(len, points.values())):,} trajectories",
    }
