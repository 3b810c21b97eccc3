"""Shared queries of connectors."""

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import Http404

from apps.accounts.models import Project
from apps.connectors.models import Connector, ConnectorRun, PulledDocument


def list_connectors(project: Project) -> QuerySet[Connector]:
    """With created_count, of all runs, and last_state, of the newest one."""
    newest = ConnectorRun.objects.filter(connector=OuterRef("pk")).order_by("-pk")
    return (
        Connector.objects.filter(project=project)
        .select_related("project")
        .annotate(
            created_count=Coalesce(Sum("runs__created"), 0),
            last_state=Subquery(newest.values("state")[:1]),
        )
        .order_by("name")
    )


def get_connector(project: Project, pk: int) -> Connector:
    connector = list_connectors(project).filter(pk=pk).first()
    if connector is None:
        raise Http404("There is no such connector in this project.")
    return connector


def document_counts(connector: Connector) -> dict[str, int]:
    """How many documents there are, by state."""
    rows = connector.documents.values_list("state").annotate(count=Count("pk"))
    return {state.value: 0 for state in PulledDocument.State} | dict(rows.order_by("state"))
