"""The trail of who did what."""

import json
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts import audit_export
from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.audit_models import AuditAlias
from apps.accounts.models import AuditEvent, Project, Role
from apps.accounts.pseudonyms import meanings_in, named
from apps.core.forms import add_widget_classes
from apps.core.http.api import paginate

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


@project_view(Role.OWNER)
@require_safe
def audit_list(request: ProjectRequest, project: Project) -> HttpResponse:
    cursor, form = request.GET.get("cursor", ""), AuditFilter(request.GET)
    # A number is given once, but a restored database may give that of a deleted project again.
    rows = project.audit_events.filter(at__gte=project.created_at)
    wanted = form.cleaned_data if form.is_valid() else {}
    events, next_cursor = paginate(_filtered(rows, wanted), cursor=cursor, limit=50, field="at")
    context = {
        "project": project,
        "form": form,
        "events": events,
        "lines": _lines(events),
        "next_cursor": next_cursor,
        "first": not cursor,
    }
    return render(request, "accounts/audit_list.html", context, status=200 if form.is_valid() else 422)


@project_view(Role.OWNER)
@require_POST
def audit_export_file(request: ProjectRequest, project: Project) -> StreamingHttpResponse:
    lines = audit_export.export_lines(project=project, by=request.user, names=bool(request.POST.get("names")))
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
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


def _lines(events: list[AuditEvent]) -> list[dict[str, Any]]:
    """Events with the people that are meant."""
    meanings = meanings_in([event.actor, event.target, event.data] for event in events)
    return [
        {
            "at": event.at,
            "actor": named(event.actor, meanings),
            "verb": event.verb,
            "target": named(event.target, meanings),
            "details": [(name, _detail_text(value)) for name, value in named(event.data, meanings).items()],
        }
        for event in events
    ]


def _detail_text(value: Any) -> str:
    """A text as it is, a list of texts with commas, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)
