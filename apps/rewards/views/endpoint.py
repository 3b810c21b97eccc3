"""Endpoints: what is deployed, rollback, switching off, and a form that scores one input."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from touchstone_client import RewardServiceError

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError, NotFound
from apps.core.number_parsing import whole_number
from apps.rewards import remote, services
from apps.rewards.deploy_evidence import deploy_evidence, served_models
from apps.rewards.forms import DeployForm, SwitchForm, TryForm
from apps.rewards.models import Endpoint
from apps.rewards.selectors import endpoint_of, endpoints_of, revisions_of
from apps.rewards.tables import EndpointTable
from apps.rewards.traffic import traffic_of
from apps.rewards.trainer_snippets import client_install, trainer_snippets
from apps.rewards.views.release import release_context
from apps.training.selectors import model_named, models_of
from workers.errors import RewardError

_FIELDS = {"/endpoint": "endpoint", "/stage": "stage", "/transforms": "amount", "/reason": "reason"}


@require_safe
@project_view(Role.RESEARCHER)
def endpoint_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = EndpointTable(request, Endpoint.objects.filter(project=project), project=project)
    context = {"project": project, "has_models": models_of(project).exists()}
    return table.response("rewards/endpoint_list.html", context)


@require_safe
@project_view(shows_models=True)
def project_node(request: ProjectRequest, project: Project) -> HttpResponse:
    """The card of the project home."""
    count = endpoints_of(project).count()
    off = endpoints_of(project).filter(switched_off=True).count()
    context: dict[str, Any] = {"count": count, "unit": "endpoint" if count == 1 else "endpoints"}
    context["text"] = f"{off} switched off" if off else ""
    if Role(request.membership.role).includes(Role.RESEARCHER):
        name, label = ("endpoint-list", "View endpoints") if count else ("endpoint-deploy", "Deploy a model")
        context |= {"url": reverse(f"rewards:{name}", args=[project.slug]), "label": label}
    return render(request, "components/_node.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def endpoint_deploy(request: ProjectRequest, project: Project) -> HttpResponse:
    """`?model=project/name@version` and `?endpoint=` fill the form in."""
    form = DeployForm(
        project, request.POST if request.method == "POST" else None, initial=_asked(request, project)
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            revision = services.deploy(
                model=data["model"],
                endpoint_name=data["endpoint"],
                project=project,
                transforms=form.transforms(),
                release_options=form.release_options(),
                by=request.user,
                reason=data["reason"],
            )
        except (DomainError, RewardError) as error:
            form.add_error(_field(error.pointer), error.message)
        else:
            stage = f", as a {data['stage']}" if data["stage"] else ""
            messages.success(
                request, f"{data['model']} is revision {revision.number} of {data['endpoint']}{stage}."
            )
            return redirect("rewards:endpoint-detail", project.slug, data["endpoint"])
    context = {
        "project": project,
        "form": form,
        "has_models": models_of(project).exists(),
        **_evidence_context(project, form),
    }
    return render(request, "rewards/endpoint_deploy.html", context)


def _evidence_context(project: Project, form: DeployForm) -> dict[str, Any]:
    """Of the model that the form has now, or would have: the newest."""
    models = models_of(project).select_related("training_run__dataset_version__project")
    number = whole_number(str(form["model"].value() or ""))
    model = models.filter(pk=number).first() if number is not None else models.first()
    if model is None:
        return {}
    endpoint = Endpoint.objects.filter(project=project, name=form["endpoint"].value() or "").first()
    served = [served_model.pk for served_model in served_models(endpoint)]
    evidence = deploy_evidence(model, endpoint)
    needs_reason = bool(evidence.failed) and model.pk not in served
    if needs_reason:  # the only thing that is still to be written
        form.fields["reason"].widget.attrs["autofocus"] = True
    return {"evidence": evidence, "needs_reason": needs_reason}


@require_safe
@project_view(Role.RESEARCHER)
def endpoint_detail(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    return _detail(request, _endpoint(project, name))


@require_safe
@project_view(Role.RESEARCHER)
def endpoint_state(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """State in the reward service; polled while it loads a revision."""
    endpoint = _endpoint(project, name)
    return render(request, "rewards/_endpoint_state.html", {"project": project, **_state(endpoint)})


@require_POST
@project_view(Role.RESEARCHER)
def endpoint_try(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    endpoint = _endpoint(project, name)
    form = TryForm(request.POST)
    context: dict[str, Any] = {}
    if form.is_valid():
        try:
            body = {"inputs": [form.to_item()]}
            reply = remote.ask(endpoint, "score", body, retries=remote.ONCE, timeout=30.0)
            context["result"] = _with_bars(reply)
        except RewardServiceError as error:
            context["failure"] = str(error)
    if request.htmx:  # type: ignore[attr-defined]
        context |= {"project": project, "endpoint": endpoint, "try_form": form}
        return render(request, "rewards/_endpoint_try.html", context)
    return _detail(request, endpoint, try_form=form, **context)


@require_POST
@project_view(Role.RESEARCHER)
def endpoint_rollback(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    to = request.POST.get("to", "")
    number = whole_number(to)
    try:
        revision = services.rollback(endpoint=_endpoint(project, name), to=number, by=request.user)
    except DomainError as error:
        if error.pointer != "/reason":
            raise
        messages.error(request, f"{error.message} Release revision {to} in stages to state it.")
    else:
        messages.success(request, f"{name} was rolled back to revision {revision.number}.")
    return redirect("rewards:endpoint-detail", project.slug, name)


@require_POST
@project_view(Role.RESEARCHER)
def endpoint_switch(request: ProjectRequest, project: Project, name: str) -> HttpResponse:
    """`reason` switches off; without it, with `on`, on."""
    endpoint = _endpoint(project, name)
    if "on" in request.POST:
        services.switch_on(endpoint=endpoint, by=request.user)
        messages.success(request, f"{name} is enabled.")
        return redirect("rewards:endpoint-detail", project.slug, name)
    form = SwitchForm(request.POST)
    if not form.is_valid():
        return _detail(request, endpoint, switch_form=form)
    services.switch_off(endpoint=endpoint, reason=form.cleaned_data["reason"], by=request.user)
    messages.success(request, f"{name} is disabled; callers get the reason.")
    return redirect("rewards:endpoint-detail", project.slug, name)


def _field(pointer: str | None) -> str:
    """Of the form, for the place in the spec where an error is; the model's for those of its components."""
    return _FIELDS.get(f"/{(pointer or '').strip('/').partition('/')[0]}", "model")


def _endpoint(project: Project, name: str) -> Endpoint:
    try:
        return endpoint_of(project, name)
    except NotFound as error:
        raise Http404(error.message) from None


def _detail(request: ProjectRequest, endpoint: Endpoint, **context: Any) -> HttpResponse:
    forms = {"try_form": TryForm(), "switch_form": SwitchForm()}
    context = (
        forms
        | context
        | {
            "project": endpoint.project,
            "endpoint": endpoint,
            "revisions": revisions_of(endpoint),
            **release_context(endpoint),
            "traffic": traffic_of(endpoint, span="day", by="version"),
            "snippets": trainer_snippets(endpoint.name, "KEY"),
            "client_install": client_install(),
        }
    )
    return render(request, "rewards/endpoint_detail.html", context)


def _state(endpoint: Endpoint) -> dict[str, Any]:
    context: dict[str, Any] = {"endpoint": endpoint}
    try:
        with remote.client_for(endpoint, timeout=3.0) as client:
            context["deployed"] = client.describe()
    except RewardServiceError as error:
        context["failure"] = str(error)
        context["is_waiting"] = error.status == 404  # it has not read the new endpoint yet
        return context
    deployed = context["deployed"]
    standby = deployed["standby"]
    context["is_waiting"] = (deployed["version"] != deployed["wanted"] and deployed["failure"] is None) or (
        standby is not None and standby["version"] is None and standby["failure"] is None
    )
    return context


def _asked(request: ProjectRequest, project: Project) -> dict[str, Any]:
    asked = {"endpoint": request.GET.get("endpoint", "")}
    if name := request.GET.get("model"):
        number = whole_number(name)  # of the form itself, which shows the results of the chosen model
        asked["model"] = str(model_named(name, project=project).pk if number is None else number)
    return asked


def _with_bars(reply: dict[str, Any]) -> dict[str, Any]:
    """The one result of a reply; each step with the length of its bar, in per cent of the largest."""
    result: dict[str, Any] = reply["results"][0] | {"version": reply["version"]}
    largest = max((abs(step["reward"]) for step in result["steps"]), default=0) or 1
    for step in result["steps"]:
        step["bar"] = round(100 * abs(step["reward"]) / largest, 1)
    return result
