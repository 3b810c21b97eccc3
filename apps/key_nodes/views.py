"""Pages of key nodes: marking a step, the nodes of a task, and what a trajectory reaches of them."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import trigger_client_event

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.core.forms import add_domain_error
from apps.key_nodes import selectors, services
from apps.key_nodes.forms import KeyNodeForm, StepNodeForm, node_initial
from apps.key_nodes.models import TaskKeyNodes
from apps.key_nodes.proposals import StepProposal, propose_node
from apps.key_nodes.tables import KeyNodesTable
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories, require_trajectory
from workers import schema
from workers.schema.key_nodes import KeyNode

_LATEST = 50  # trajectories of a task whose completion its page shows


@require_safe
@project_view(Role.RESEARCHER)
def key_nodes_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = KeyNodesTable(request, TaskKeyNodes.objects.filter(project=project), project=project)
    return table.response("key_nodes/key_nodes_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def node_create(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    """A form that proposes a pattern from a step; POST adds the node to the task. `quote`: a text selected in it."""
    trajectory = require_trajectory(project, pk)
    content = load_trajectories([pk])[pk]
    if index >= len(content.steps):
        raise NotFound(f"Trajectory {pk} has no step {index}; it has {len(content.steps)}, counted from 0.")
    proposal = propose_node(content.steps, index, request.GET.get("quote", "")[:1000])
    own = selectors.key_nodes_of(trajectory.task)
    taken = {node["name"] for node in own.nodes} if own is not None else set()
    form = StepNodeForm(request.POST or None, proposal, taken)
    if request.method == "POST" and form.is_valid():
        try:
            node = form.node()
            _require_reached(node, content, index)
            own = services.add_key_node(task=trajectory.task, node=node, by=request.user)
            return _marked(request, project, trajectory, index, own)
        except DomainError as error:
            add_domain_error(form, error)
    return _node_form(request, project, trajectory, index, form, proposal)


@require_safe
@project_view(Role.RESEARCHER)
def trajectory_nodes(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """What the trajectory reaches of its task's key nodes: a fragment for its page."""
    trajectory = require_trajectory(project, pk)
    own, rows = selectors.rows_of_trajectory(trajectory)
    reached = sum(row.step is not None for row in rows)
    context = {"project": project, "trajectory": trajectory, "own": own, "rows": rows, "reached": reached}
    is_part = request.htmx  # type: ignore[attr-defined]
    template = "_trajectory_nodes.html" if is_part else "trajectory_nodes.html"
    return render(request, f"key_nodes/{template}", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def key_nodes_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST sets whether the order counts, or with `delete` deletes all nodes of the task."""
    own = selectors.get_key_nodes(project, pk)
    if request.method == "POST" and "delete" in request.POST:
        services.delete_key_nodes(own=own, by=request.user)
        messages.success(request, f"The key nodes of {own.task} were deleted.")
        return redirect("key_nodes:key-nodes-list", project.slug)
    if request.method == "POST":
        in_order = "in_order" in request.POST
        services.set_key_nodes(task=own.task, nodes=own.nodes, in_order=in_order, by=request.user)
        messages.success(request, "Saved.")
        return redirect("key_nodes:key-nodes-detail", project.slug, pk)
    completions = list(selectors.list_completions(own)[:_LATEST])
    counts = selectors.reached_counts(own, completions)
    nodes = selectors.read_nodes(own).nodes
    context = {
        "project": project,
        "own": own,
        "nodes": list(zip(nodes, counts, strict=True)),
        "completions": completions,
        "waiting": selectors.stale_trajectories(project).filter(task=own.task_id).count(),
    }
    return render(request, "key_nodes/key_nodes_detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def node_add(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    own = selectors.get_key_nodes(project, pk)
    form = KeyNodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.add_key_node(task=own.task, node=form.node(), by=request.user)
            messages.success(request, "The key node was added.")
            return redirect("key_nodes:key-nodes-detail", project.slug, pk)
        except DomainError as error:
            _put_error(form, error)
    return _edit_page(request, project, own, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def node_edit(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    own = selectors.get_key_nodes(project, pk)
    node = _node_at(own, index)
    form = KeyNodeForm(request.POST or None, initial=node_initial(node))
    if request.method == "POST" and form.is_valid():
        try:
            services.edit_key_node(own=own, place=index, node=form.node(), by=request.user)
            messages.success(request, "Saved.")
            return redirect("key_nodes:key-nodes-detail", project.slug, pk)
        except DomainError as error:
            _put_error(form, error)
    return _edit_page(request, project, own, form, index)


@require_POST
@project_view(Role.RESEARCHER)
def node_move(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    """`up` or `down`."""
    own = selectors.get_key_nodes(project, pk)
    to = index - 1 if "up" in request.POST else index + 1
    services.move_key_node(own=own, place=index, to=to, by=request.user)
    return redirect("key_nodes:key-nodes-detail", project.slug, pk)


@require_POST
@project_view(Role.RESEARCHER)
def node_delete(request: ProjectRequest, project: Project, pk: int, index: int) -> HttpResponse:
    own = selectors.get_key_nodes(project, pk)
    name = _node_at(own, index).name
    left = services.delete_key_node(own=own, place=index, by=request.user)
    messages.success(request, f"The key node {name} was deleted.")
    if left is None:
        return redirect("key_nodes:key-nodes-list", project.slug)
    return redirect("key_nodes:key-nodes-detail", project.slug, pk)


def _node_at(own: TaskKeyNodes, place: int) -> KeyNode:
    nodes = selectors.read_nodes(own).nodes
    if place >= len(nodes):
        raise NotFound(f"The task has {len(nodes)} key nodes; there is none at {place}, counted from 0.")
    return nodes[place]


def _require_reached(node: dict[str, Any], content: schema.Trajectory, index: int) -> None:
    """Raises DomainError where the step that was clicked does not have the pattern: a mistake in what was typed."""
    from workers.engine.rules.key_nodes import reached_nodes  # loads the engine

    (found,) = reached_nodes(services.checked_key_nodes([node], in_order=False), content.steps)
    if found.step is None or found.step > index:
        field = "quote" if "text" in node else "address" if "url" in node else "pattern"
        raise DomainError("This step does not have it; copy it exactly.", pointer=f"/{field}")


def _marked(
    request: ProjectRequest, project: Project, trajectory: Trajectory, index: int, own: TaskKeyNodes
) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        url = reverse("trajectories:trajectory-detail", args=[project.slug, trajectory.pk])
        return redirect(f"{url}?step={index}#t{trajectory.pk}-s{index}")
    context = {"project": project, "own": own, "name": own.nodes[-1]["name"], "place": len(own.nodes) - 1}
    response = render(request, "key_nodes/_node_marked.html", context)
    return trigger_client_event(response, "key-nodes-changed")


def _node_form(
    request: ProjectRequest,
    project: Project,
    trajectory: Trajectory,
    index: int,
    form: StepNodeForm,
    proposal: StepProposal,
) -> HttpResponse:
    is_part = bool(request.htmx)  # type: ignore[attr-defined]
    chosen = set(form.data.getlist("arguments")) if form.is_bound else None  # type: ignore[attr-defined]
    context = {
        "project": project,
        "trajectory": trajectory,
        "index": index,
        "form": form,
        "proposal": proposal,
        "choice": form.data.get("pattern") if form.is_bound else proposal.choice,
        "calls": [
            (
                call,
                [
                    (f"{number}.{place}", each, each.is_ticked if chosen is None else f"{number}.{place}" in chosen)
                    for place, each in enumerate(call.arguments)
                ],
            )
            for number, call in enumerate(proposal.calls)
        ],
        "address": form.data.get("address") if form.is_bound else next(iter(proposal.addresses), ""),
        "quote": form.data.get("quote") if form.is_bound else proposal.quote,
    }  # fmt: skip
    template = "_node_form.html" if is_part else "node_create.html"
    status = 422 if form.is_bound and not is_part else 200  # htmx does not swap in what is refused
    return render(request, f"key_nodes/{template}", context, status=status)


def _put_error(form: KeyNodeForm, error: DomainError) -> None:
    """To the field of the first part of its pointer."""
    first = (error.pointer or "").split("/")[1:2]
    name = first[0] if first and first[0] in form.fields else None
    form.add_error(name, error.message)


def _edit_page(
    request: ProjectRequest, project: Project, own: TaskKeyNodes, form: KeyNodeForm, place: int | None
) -> HttpResponse:
    context = {"project": project, "own": own, "form": form, "place": place}
    status = 422 if form.is_bound else 200
    return render(request, "key_nodes/node_edit.html", context, status=status)
