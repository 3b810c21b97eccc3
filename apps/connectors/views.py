"""Pages of connectors: what there is, a new one, its runs."""

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.connectors import services
from apps.connectors.forms import ConnectorForm
from apps.connectors.models import Connector, ConnectorRun
from apps.connectors.selectors import document_counts, get_connector
from apps.connectors.sources import KINDS
from apps.connectors.tables import ConnectorTable
from apps.connectors.targets import TARGETS
from apps.core.errors import DomainError
from apps.core.http.job_pages import job_fragment
from apps.core.jobs import job_queue

_RUNS_LISTED = 20
_REJECTED_PAGE = 50
secret_in_form = sensitive_post_parameters("secret")


@require_safe
@project_view(Role.RESEARCHER)
def connector_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = ConnectorTable(request, Connector.objects.filter(project=project), project=project)
    return table.response(
        "connectors/connector_list.html", {"project": project, "may_edit": _may_edit(request)}
    )


@require_safe
@project_view(Role.OWNER)
def connector_kinds(request: ProjectRequest, project: Project) -> HttpResponse:
    """The first step of a new connector: its kind."""
    context = {"project": project, "kinds": KINDS.values()}
    return render(request, "connectors/connector_kinds.html", context)


@secret_in_form
@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def connector_new(request: ProjectRequest, project: Project, kind: str) -> HttpResponse:
    if kind not in KINDS:
        return redirect("connectors:connector-kinds", project.slug)
    form = ConnectorForm(
        request.POST if request.method == "POST" else None, kind=KINDS[kind], project=project
    )
    create = partial(services.create_connector, project=project, kind=kind, by=request.user)
    if (connector := _saved(form, create)) is not None:
        return redirect("connectors:connector-detail", project.slug, connector.pk)
    return _render_form(request, project, form, None)


@require_safe
@project_view(Role.RESEARCHER)
def connector_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    connector = get_connector(project, pk)
    runs = list(connector.runs.select_related("started_by")[:_RUNS_LISTED])
    kind = KINDS.get(connector.kind)
    context = {
        "project": project,
        "connector": connector,
        "kind": kind,
        "options": [
            (option.label, connector.options[option.name])
            for option in (kind.options if kind else ())
            if connector.options.get(option.name)
        ],
        "runs": runs,
        "current": next((run for run in runs if not run.is_finished), None),
        "counts": document_counts(connector),
        "may_edit": _may_edit(request),
        "takes_scores": connector.kind in TARGETS,
        "pushed_count": connector.pushed_scores.count(),
    }
    return render(request, "connectors/connector_detail.html", context)


@secret_in_form
@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def connector_edit(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    connector = get_connector(project, pk)
    form = ConnectorForm(
        request.POST if request.method == "POST" else None,
        kind=KINDS[connector.kind],
        project=project,
        edited=connector,
    )
    update = partial(services.update_connector, connector=connector, by=request.user)
    if _saved(form, update) is not None:
        return redirect("connectors:connector-detail", project.slug, connector.pk)
    return _render_form(request, project, form, connector)


@require_POST
@project_view(Role.RESEARCHER)
def connector_run(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    connector = get_connector(project, pk)
    try:
        services.start_run(connector=connector, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("connectors:connector-detail", project.slug, connector.pk)


@require_POST
@project_view(Role.OWNER)
def connector_push(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """What members judged leaves the installation, so an owner decides."""
    connector = get_connector(project, pk)
    try:
        services.start_run(connector=connector, direction=ConnectorRun.Direction.PUSH, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("connectors:connector-detail", project.slug, connector.pk)


@require_POST
@project_view(Role.RESEARCHER)
def connector_pause(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`resume`: to start its schedule again."""
    connector = get_connector(project, pk)
    services.pause_connector(connector=connector, paused="resume" not in request.POST, by=request.user)
    return redirect("connectors:connector-detail", project.slug, connector.pk)


@require_POST
@project_view(Role.OWNER)
def connector_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    connector = get_connector(project, pk)
    try:
        services.delete_connector(connector=connector, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("connectors:connector-detail", project.slug, connector.pk)
    messages.success(request, f"{connector.name} was deleted. Its trajectories are kept.")
    return redirect("connectors:connector-list", project.slug)


@require_safe
@project_view(Role.RESEARCHER)
def connector_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The run in progress, as a fragment; after its end the whole page is loaded again."""
    connector = get_connector(project, pk)
    current = connector.runs.first()
    context = {"project": project, "connector": connector, "current": current}
    return job_fragment(
        request, "connectors/_run_status.html", context, is_finished=current is None or current.is_finished
    )


@require_safe
@project_view(Role.RESEARCHER)
def run_detail(request: ProjectRequest, project: Project, pk: int, run: int) -> HttpResponse:
    connector, found = _get_run(project, pk, run)
    page = Paginator(found.rejected, _REJECTED_PAGE).get_page(request.GET.get("cursor"))
    context = {
        "project": project,
        "connector": connector,
        "run": found,
        "rejected": page.object_list,
        "next_cursor": page.next_page_number() if page.has_next() else None,
        "first": not page.has_previous(),
    }
    return render(request, "connectors/run_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def run_cancel(request: ProjectRequest, project: Project, pk: int, run: int) -> HttpResponse:
    connector, found = _get_run(project, pk, run)
    job_queue.request_cancel(found)
    return redirect("connectors:connector-detail", project.slug, connector.pk)


def _get_run(project: Project, pk: int, run: int) -> tuple[Connector, ConnectorRun]:
    connector = get_connector(project, pk)
    return connector, get_object_or_404(
        ConnectorRun.objects.select_related("started_by"), connector=connector, pk=run
    )


def _may_edit(request: ProjectRequest) -> bool:
    return Role(request.membership.role).includes(Role.OWNER)


def _saved(form: ConnectorForm, save: Callable[..., Connector]) -> Connector | None:
    """The connector that `save` made of a form that was sent; None where the form shows errors, or was not sent."""
    if not form.is_valid():
        return None
    try:
        return save(spec=form.spec, secret=form.cleaned_data.get("secret", ""))
    except DomainError as error:
        form.add_error(form.field_at(error.pointer), error.message)
        return None


def _render_form(
    request: ProjectRequest, project: Project, form: ConnectorForm, connector: Connector | None
) -> HttpResponse:
    context = {"project": project, "form": form, "kind": form.kind, "connector": connector}
    status = 422 if form.errors else 200
    return render(request, "connectors/connector_form.html", context, status=status)
