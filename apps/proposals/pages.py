"""Parts of the pages of proposals that are the same for every kind."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from apps.accounts.access import ProjectRequest
from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.llm.page_context import connection_context
from apps.proposals.forms import ProposalJobForm
from apps.proposals.models import ProposalJob


def create_page(
    request: ProjectRequest,
    project: Project,
    form: ProposalJobForm,
    start: Callable[[], ProposalJob],
    *,
    template: str,
    detail: str,
) -> HttpResponse:
    """start: queues the proposal that a valid form asks for. detail: the name of the page of one."""
    if request.method == "POST" and form.is_valid():
        try:
            return redirect(detail, project.slug, start().pk)
        except DomainError as error:
            add_domain_error(form, error)
    context = {"project": project, "form": form} | connection_context(request, project)
    return render(request, template, context, status=422 if form.errors else 200)


def decide(
    request: ProjectRequest,
    *,
    accept: Callable[[], object],
    reject: Callable[[], object],
    what: str,
) -> None:
    """`accept` or `reject` a row as it is stored, by the button that was pressed. what: with its verb, for people."""
    try:
        if "accept" in request.POST:
            accept()
            messages.success(request, f"{what} accepted.")
        elif "reject" in request.POST:
            reject()
            messages.success(request, f"{what} rejected.")
    except DomainError as error:
        messages.error(request, error.message)
