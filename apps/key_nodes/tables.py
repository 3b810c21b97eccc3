"""The table of tasks with key nodes."""

from django.db.models import Avg, Count, OuterRef, QuerySet, Subquery
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn
from apps.key_nodes.models import KeyNodeCompletion, TaskKeyNodes


class KeyNodesTable(DataTable[TaskKeyNodes]):
    """options: project."""

    name = "key-nodes"
    nouns = ("task", "tasks")
    default_sort = "-changed"
    search = ("task__external_id",)
    search_label = "Search tasks"
    columns = (
        TableColumn("task", "Task", value="task", sort="task__external_id", is_link=True, is_fixed=True),
        TableColumn("nodes", "Key nodes", value=lambda own: len(own.nodes), kind="number"),
        TableColumn("order", "Order", value=lambda own: "ordered" if own.in_order else "any", sort="in_order"),
        TableColumn("trajectories", "Trajectories", value="counted", kind="number"),
        TableColumn("completion", "Mean completion", value="mean_share", kind="percent",
                    template="key_nodes/cells/_mean.html"),
        TableColumn("changed", "Changed", value="changed_at", sort="changed_at", kind="time"),
    )  # fmt: skip

    def load(self, rows: QuerySet[TaskKeyNodes]) -> QuerySet[TaskKeyNodes]:
        own = KeyNodeCompletion.objects.filter(key_nodes=OuterRef("pk"), revision=OuterRef("revision"))
        found = own.order_by().values("key_nodes").annotate(mean=Avg("share"), count=Count("pk"))
        return rows.select_related("task").annotate(
            mean_share=Subquery(found.values("mean")), counted=Subquery(found.values("count"))
        )

    def row_url(self, row: TaskKeyNodes) -> str:
        return reverse("key_nodes:key-nodes-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: TaskKeyNodes) -> str:
        return f"Key nodes of {row.task}"
