"""API keys: made, shown once, revoked."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from apps.accounts import services
from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.forms import ApiKeyForm
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError


@project_view(Role.OWNER)
@require_safe
def key_list(request: ProjectRequest, project: Project) -> HttpResponse:
    return _page(request, project, ApiKeyForm())


@project_view(Role.OWNER)
@require_POST
@never_cache
@sensitive_variables("secret")
def key_create(request: ProjectRequest, project: Project) -> HttpResponse:
    form = ApiKeyForm(request.POST)
    if form.is_valid():
        scopes, name = form.cleaned_data["scopes"], form.cleaned_data["name"]
        try:
            key, secret = services.create_api_key(
                project=project, scopes=scopes, name=name, by=request.user, expires_at=form.expires_at
            )
        except DomainError as error:
            form.add_error("expires" if error.pointer == "/expires_at" else None, error.message)
        else:
            # Rendered, not redirected to: the secret exists only in this answer.
            return _page(request, project, ApiKeyForm(), new_key=key, secret=secret)
    return _page(request, project, form, status=422)


@project_view(Role.OWNER)
@require_POST
def key_revoke(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    key = services.revoke_api_key(key=get_object_or_404(project.api_keys, pk=pk), by=request.user)
    messages.success(request, f"{key.prefix} is revoked; calls with it are refused from now on.")
    return redirect("accounts:key-list", project.slug)


def _page(
    request: ProjectRequest, project: Project, form: ApiKeyForm, *, status: int = 200, **more: object
) -> HttpResponse:
    keys = project.api_keys.select_related("created_by").order_by("-created_at")
    context = {"project": project, "keys": keys, "form": form, **more}
    return render(request, "accounts/key_list.html", context, status=status)
