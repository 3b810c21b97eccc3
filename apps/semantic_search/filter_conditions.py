"""The condition of the filter of trajectories about clusters."""

from django.db.models import Exists, OuterRef, Q

from apps.accounts.models import Project
from apps.semantic_search.models import ClusterMember, TrajectoryClustering
from apps.trajectories.filters import FilterError, TrajectoryFilter


def cluster_condition(project: Project, filter: TrajectoryFilter) -> Q | None:
    if not filter.cluster:
        return None
    clustering, _, number = filter.cluster.partition(".")
    if not TrajectoryClustering.objects.filter(project=project, pk=int(clustering)).exists():
        raise FilterError(
            {"cluster": f"is {filter.cluster}; there is no clustering {clustering} in this project"}
        )
    members = ClusterMember.objects.filter(
        clustering=int(clustering), cluster=int(number) - 1, trajectory=OuterRef("pk")
    )
    return Q(Exists(members))
