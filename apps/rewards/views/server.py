"""Servers that compute models: the state of their replicas, adding, draining and removing them."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.rewards import server_services
from apps.rewards.forms import ReplicaForm
from apps.rewards.selectors import model_server, server_replica
from apps.rewards.server_states import server_views


@require_safe
@project_view(Role.RESEARCHER)
def server_list(request: ProjectRequest, project: Project) -> HttpResponse:
    return render(request, "rewards/server_list.html", _context(request, project) | {"form": ReplicaForm()})


@require_safe
@project_view(Role.RESEARCHER)
def server_state(request: ProjectRequest, project: Project) -> HttpResponse:
    """The tables; polled."""
    return render(request, "rewards/_server_state.html", _context(request, project))


@require_POST
@project_view(Role.OWNER)
def replica_add(request: ProjectRequest, project: Project) -> HttpResponse:
    form = ReplicaForm(request.POST)
    if form.is_valid():
        try:
            replica = server_services.add_replica(project=project, by=request.user, **form.cleaned_data)
        except DomainError as error:
            add_domain_error(form, error)
        else:
            messages.success(request, f"{replica.address} is a replica of {replica.server}.")
            return redirect("rewards:server-list", project.slug)
    context = _context(request, project) | {"form": form}
    return render(request, "rewards/server_list.html", context, status=422)


@require_POST
@project_view(Role.OWNER)
def replica_drain(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`resume` resumes it."""
    replica = server_replica(project, pk)
    is_draining = "resume" not in request.POST
    server_services.set_draining(replica=replica, is_draining=is_draining, by=request.user)
    said = "gets no new batches" if is_draining else "is in service again"
    messages.success(request, f"{replica.address} {said}.")
    return redirect("rewards:server-list", project.slug)


@require_POST
@project_view(Role.OWNER)
def replica_remove(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    replica = server_replica(project, pk)
    server_services.remove_replica(replica=replica, by=request.user)
    messages.success(request, f"{replica.address} was removed from {replica.server}.")
    return redirect("rewards:server-list", project.slug)


@require_POST
@project_view(Role.OWNER)
def server_delete(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    server = model_server(project, name)
    try:
        server_services.delete_server(server=server, by=request.user)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The server {name} was deleted.")
    return redirect("rewards:server-list", project.slug)


def _context(request: ProjectRequest, project: Project) -> dict[str, Any]:
    servers, processes = server_views(project)
    is_owner = Role(request.membership.role).includes(Role.OWNER)
    return {"project": project, "servers": servers, "processes": processes, "is_owner": is_owner}
