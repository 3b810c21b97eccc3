"""The trail of who did what."""

import json
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts import audit_export
from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.audit_models import AuditAlias
from apps.accounts.models import AuditEvent, Project, Role
from apps.accounts.pseudonyms import meanings_in, named
from apps.core.forms import add_widget_classes
from apps.core.http.streaming import StreamedLines
from apps.core.tables import DataTable, TableColumn

_DAY = timedelta(days=1)


class AuditFilter(forms.Form):
    actor = forms.CharField(
        required=False,
        max_length=254,
        label="Who",
        widget=forms.TextInput(attrs={"placeholder": "address or key prefix"}),
    )
    verb = forms.CharField(
        required=False,
        max_length=60,
        label="What",
        widget=forms.TextInput(attrs={"placeholder": "key.created, or key."}),
    )
    since = forms.DateField(required=False, label="From", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_widget_classes(self)


class AuditTable(DataTable[AuditEvent]):
    """options: project. The file is that of `audit_export_file`, which is an event of the trail too."""

    name = "audit-events"
    nouns = ("event", "events")
    default_sort = "-time"
    has_file = False
    columns = (
        TableColumn(
            "time", "Time", value="at", sort="at", template="accounts/cells/_audit_time.html", is_fixed=True
        ),
        TableColumn("actor", "Actor", value="shown_actor"),
        TableColumn("action", "Action", value="verb", template="accounts/cells/_audit_verb.html"),
        TableColumn("target", "Target", value="shown_target"),
        TableColumn("details", "Details", value="details", template="accounts/cells/_audit_details.html"),
    )

    def prepare(self, rows: list[Any]) -> list[Any]:
        """Events with the people that are meant."""
        meanings = meanings_in([event.actor, event.target, event.data] for event in rows)
        for event in rows:
            event.shown_actor, event.shown_target = (
                named(event.actor, meanings),
                named(event.target, meanings),
            )
            event.details = [
                (name, _detail_text(value)) for name, value in named(event.data, meanings).items()
            ]
        return rows


@project_view(Role.OWNER)
@require_safe
def audit_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    form = AuditFilter(request.GET)
    # A number is given once, but a restored database may give that of a deleted project again.
    rows = project.audit_events.filter(at__gte=project.created_at)
    is_valid = form.is_valid()
    wanted = form.cleaned_data if is_valid else {}
    table = AuditTable(
        request,
        _filtered(rows, wanted) if is_valid else rows.none(),
        filter_query="",
        is_filtered=any(wanted.values()) or not is_valid,
        project=project,
    )
    context = {"project": project, "form": form}
    return table.response("accounts/audit_list.html", context, status=200 if is_valid else 422)


@project_view(Role.OWNER)
@require_POST
def audit_export_file(request: ProjectRequest, project: Project) -> StreamedLines:
    lines = audit_export.export_lines(project=project, by=request.user, names=bool(request.POST.get("names")))
    response = StreamedLines(lines)
    response.headers["Content-Disposition"] = f'attachment; filename="audit-{project.slug}.jsonl"'
    return response


def _filtered(rows: QuerySet[AuditEvent], wanted: dict[str, Any]) -> QuerySet[AuditEvent]:
    if actor := (wanted.get("actor") or "").strip():
        alias = AuditAlias.objects.filter(kind=AuditAlias.Kind.PERSON, value=actor.lower()).first()
        rows = rows.filter(actor=alias.pseudonym if alias else actor)
    if verb := (wanted.get("verb") or "").strip():
        rows = rows.filter(verb__startswith=verb)
    if since := wanted.get("since"):
        rows = rows.filter(at__gte=_midnight(since))
    if until := wanted.get("until"):
        rows = rows.filter(at__lt=_midnight(until) + _DAY)
    return rows


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.get_current_timezone())


def _detail_text(value: Any) -> str:
    """A text as it is, a list of texts with commas, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)
