"""The table of policy documents."""

from django.db.models import Max, QuerySet
from django.urls import reverse

from apps.core.tables import DataTable, TableColumn
from apps.policy_documents.models import PolicyDocument


class PolicyDocumentTable(DataTable[PolicyDocument]):
    """options: project."""

    name = "policy-documents"
    nouns = ("document", "documents")
    default_sort = "name"
    columns = (
        TableColumn("name", "Document", value="name", sort="name", is_link=True, is_fixed=True),
        TableColumn("version", "Version", value="last_number", kind="number"),
        TableColumn("created", "Created", value="created_at", sort="created_at", kind="time"),
    )

    def load(self, rows: QuerySet[PolicyDocument]) -> QuerySet[PolicyDocument]:
        return rows.select_related("project").annotate(last_number=Max("versions__number"))

    def row_url(self, row: PolicyDocument) -> str:
        return reverse("policy_documents:document-detail", args=[self.project.slug, row.pk])

    def row_label(self, row: PolicyDocument) -> str:
        return row.name
