"""Pages of policy documents: the list, a new version, a version with its rules, and one rule with its quote."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.core.forms import add_domain_error
from apps.core.http.job_pages import job_state_fragment
from apps.core.jobs import job_queue
from apps.policy_documents import rule_services, selectors, services
from apps.policy_documents.forms import DocumentForm, RuleForm, rule_values
from apps.policy_documents.models import PolicyDocument, PolicyRule, PolicySplit
from apps.policy_documents.tables import PolicyDocumentTable
from workers.policy_rules.conflicts import find_conflicts
from workers.schema.policy_checks import checks_text

_AROUND = 600  # characters of the document before and after a quote


@require_safe
@project_view(Role.RESEARCHER)
def document_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = PolicyDocumentTable(request, PolicyDocument.objects.filter(project=project), project=project)
    return table.response("policy_documents/document_list.html", {"project": project})


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def document_create(request: ProjectRequest, project: Project) -> HttpResponse:
    """`name` of the address: that of the document which gets a version."""
    initial = {"name": request.GET.get("name", "")}
    form = DocumentForm(request.POST or None, request.FILES or None, project=project, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            version = services.add_version(
                project=project,
                name=data["name"],
                text=data["text"],
                file_name=data["file"].name if data["file"] else "",
                llm_connection=data["llm_connection"],
                by=request.user,
            )
            return redirect("policy_documents:document-detail", project.slug, version.document_id)
        except DomainError as error:
            add_domain_error(form, error)
    context = {"project": project, "form": form}
    return render(
        request, "policy_documents/document_create.html", context, status=422 if form.errors else 200
    )


@require_safe
@project_view(Role.RESEARCHER)
def document_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`version` of the address; the newest without it."""
    document = selectors.get_document(project, pk)
    asked = request.GET.get("version", "")
    version = selectors.get_version(document, int(asked) if asked.isdecimal() and len(asked) < 9 else None)
    rules = list(selectors.list_rules(version))
    newest = document.newest
    checks = selectors.accepted_checks(version)
    context = {
        "project": project,
        "document": document,
        "version": version,
        "is_newest": version.number == newest.number,
        "versions": document.versions.order_by("-number"),
        "rules": [rule for rule in rules if rule.state != PolicyRule.State.MERGED],
        "merged": [rule for rule in rules if rule.state == PolicyRule.State.MERGED],
        "counts": {state: sum(rule.state == state for rule in rules) for state in PolicyRule.State.values},
        "judged_again": selectors.judged_again(version),
        "checks": checks_text(checks),
        "conflicts": find_conflicts(checks),
        "job": PolicySplit.objects.filter(version=version).order_by("-pk").first(),
    }
    return render(request, "policy_documents/document_detail.html", context)


@require_POST
@project_view(Role.RESEARCHER)
def document_delete(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    document = selectors.get_document(project, pk)
    services.delete_document(document=document, by=request.user)
    messages.success(request, f"The policy document {document.name} was deleted.")
    return redirect("policy_documents:document-list", project.slug)


@require_POST
@project_view(Role.RESEARCHER)
def rules_decide(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """`accept`, `reject` or `merge` the rules that were selected; what is decided so already is left."""
    document = selectors.get_document(project, pk)
    keys = {int(key) for key in request.POST.getlist("rule") if key.isdecimal() and len(key) < 19}
    rules = list(selectors.list_rules(document.newest).filter(pk__in=keys))
    if not rules:
        messages.error(request, "Select rules of the newest version first.")
        return redirect("policy_documents:document-detail", project.slug, pk)
    try:
        if "merge" in request.POST:
            merged = rule_services.merge_rules(rules=rules, by=request.user)
            return redirect("policy_documents:rule-detail", project.slug, merged.pk)
        state = PolicyRule.State.ACCEPTED if "accept" in request.POST else PolicyRule.State.REJECTED
        decide = rule_services.accept_rule if "accept" in request.POST else rule_services.reject_rule
        chosen = [rule for rule in rules if rule.state != state]
        for rule in chosen:
            decide(rule=rule, by=request.user)
        messages.success(request, f"{len(chosen)} rule{'s' * (len(chosen) != 1)} {state}.")
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("policy_documents:document-detail", project.slug, pk)


@require_http_methods(["GET", "HEAD", "POST"])
@project_view(Role.RESEARCHER)
def rule_detail(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """POST saves what was typed, and with `accept` or `reject` decides."""
    rule = selectors.get_rule(project, pk)
    form = RuleForm(request.POST or None, initial=rule_values(rule))
    if request.method == "POST" and form.is_valid():
        try:
            if form.has_changed():
                rule = rule_services.edit_rule(rule=rule, changes=form.cleaned_data, by=request.user)
            if "accept" in request.POST:
                rule_services.accept_rule(rule=rule, by=request.user)
            elif "reject" in request.POST:
                rule_services.reject_rule(rule=rule, by=request.user)
            messages.success(request, "Saved.")
            return redirect("policy_documents:document-detail", project.slug, rule.version.document_id)
        except DomainError as error:
            add_domain_error(form, error)
    text = rule.version.text
    context = {
        "project": project,
        "rule": rule,
        "form": form,
        "before": text[max(0, rule.start - _AROUND) : rule.start],
        "after": text[rule.end : rule.end + _AROUND],
    }
    return render(request, "policy_documents/rule_detail.html", context, status=422 if form.errors else 200)


@require_safe
@project_view(Role.RESEARCHER)
def split_status(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    """The fragment that polls until the rules are there; the whole page is reloaded then."""
    return job_state_fragment(request, project, selectors.get_split(project, pk), "policy_documents:split")


@require_POST
@project_view(Role.RESEARCHER)
def split_cancel(request: ProjectRequest, project: Project, pk: int) -> HttpResponse:
    split = selectors.get_split(project, pk)
    job_queue.request_cancel(split)
    return redirect("policy_documents:document-detail", project.slug, split.version.document_id)
