"""An owner's page of language models."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.judges import services
from apps.judges.forms import LanguageModelForm
from apps.judges.models import LanguageModel
from apps.judges.selectors import costs_of, language_models_of

secret_in_form = sensitive_post_parameters("key")


@secret_in_form
@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def language_model_list(request: ProjectRequest, project: Project) -> HttpResponse:
    """POST adds one."""
    form = LanguageModelForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            services.add_language_model(
                project=project, spec=form.spec, key=form.cleaned_data["key"], by=request.user
            )
        except DomainError as error:
            _say(form, error)
        else:
            return redirect("judges:language-model-list", project.slug)
    context = {
        "project": project,
        "form": form,
        "language_models": language_models_of(project),
        "costs": costs_of(project),
    }
    status = 422 if form.errors else 200
    return render(request, "judges/language_model_list.html", context, status=status)


@secret_in_form
@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.OWNER)
def language_model_edit(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    language_model = _language_model(project, pk)
    form = LanguageModelForm(request.POST if request.method == "POST" else None, of=language_model)
    if request.method == "POST" and form.is_valid():
        try:
            services.change_language_model(
                language_model=language_model, spec=form.spec, key=form.cleaned_data["key"], by=request.user
            )
        except DomainError as error:
            _say(form, error)
        else:
            return redirect("judges:language-model-list", project.slug)
    context = {"project": project, "form": form, "language_model": language_model}
    status = 422 if form.errors else 200
    return render(request, "judges/language_model_edit.html", context, status=status)


@require_POST
@project_view(Role.OWNER)
def language_model_remove(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    language_model = _language_model(project, pk)
    services.remove_language_model(language_model=language_model, by=request.user)
    messages.success(request, f"{language_model.name} is asked nothing more, and its key is gone.")
    return redirect("judges:language-model-list", project.slug)


@require_POST
@project_view(Role.OWNER)
def language_model_try(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    language_model = _language_model(project, pk)
    try:
        said = services.try_language_model(language_model=language_model)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"{language_model.name} answers: {said}")
    return redirect("judges:language-model-list", project.slug)


def _language_model(project: Project, pk: int) -> LanguageModel:
    return get_object_or_404(LanguageModel.objects.select_related("project"), project=project, pk=pk)


def _say(form: LanguageModelForm, error: DomainError) -> None:
    field = (error.pointer or "").removeprefix("/")
    form.add_error(field if field in form.fields else None, error.message)
