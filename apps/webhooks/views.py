"""The owner's page of webhooks and their deliveries."""

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.access import ProjectRequest, project_view
from apps.accounts.models import Project, Role
from apps.core.errors import DomainError
from apps.webhooks import services
from apps.webhooks.forms import WebhookForm
from apps.webhooks.models import Delivery, MessageFormat, Webhook
from apps.webhooks.tables import DeliveryTable, WebhookTable

_NEWEST = 10


@project_view(Role.OWNER)
@require_safe
def webhook_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    return _page(request, project, WebhookForm())


@project_view(Role.OWNER)
@require_POST
@never_cache
@sensitive_variables("secret")
def webhook_add(request: ProjectRequest, project: Project) -> HttpResponseBase:
    form = WebhookForm(request.POST)
    if form.is_valid():
        url, events = form.cleaned_data["url"], form.cleaned_data["events"]
        try:
            webhook, secret = services.add_webhook(
                project=project,
                url=url,
                events=events,
                by=request.user,
                message_format=form.cleaned_data["message_format"] or MessageFormat.STANDARD,
            )
        except DomainError as error:
            form.add_error("events" if error.pointer == "/events" else "url", error.message)
        else:
            # Rendered, not redirected to: the secret is shown in this answer and in no other.
            return _page(request, project, WebhookForm(), shown=webhook, secret=secret)
    return _page(request, project, form, status=422)


@project_view(Role.OWNER)
@require_POST
def webhook_remove(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    webhook = _webhook(project, pk)
    services.remove_webhook(webhook=webhook, by=request.user)
    messages.success(request, f"{webhook.shown_url} no longer receives events.")
    return redirect("webhooks:webhook-list", project.slug)


@project_view(Role.OWNER)
@require_POST
@never_cache
@sensitive_variables("secret")
def webhook_secret(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    webhook = _webhook(project, pk)
    secret = services.new_secret(webhook=webhook, by=request.user)
    return _page(request, project, WebhookForm(), shown=webhook, secret=secret)


@project_view(Role.OWNER)
@require_POST
def webhook_test(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    services.send_test(webhook=_webhook(project, pk))
    messages.success(request, "A test message was sent; its result appears in the list below.")
    return redirect("webhooks:webhook-list", project.slug)


@project_view(Role.OWNER)
@require_safe
def delivery_list(request: ProjectRequest, project: Project) -> HttpResponseBase:
    table = DeliveryTable(request, Delivery.objects.filter(webhook__project=project), project=project)
    return table.response("webhooks/delivery_list.html", {"project": project})


@project_view(Role.OWNER)
@require_POST
def delivery_again(request: ProjectRequest, project: Project, pk: int) -> HttpResponseBase:
    delivery = get_object_or_404(Delivery, webhook__project=project, pk=pk)
    services.send_again(delivery=delivery)
    messages.success(request, "It is sent again, under the id it had.")
    back = "webhooks:delivery-list" if "back" in request.POST else "webhooks:webhook-list"
    return redirect(back, project.slug)


def _webhook(project: Project, pk: int) -> Webhook:
    return get_object_or_404(Webhook.objects.select_related("project"), project=project, pk=pk)


def _page(
    request: ProjectRequest, project: Project, form: WebhookForm, *, status: int = 200, **more: object
) -> HttpResponseBase:
    deliveries = Delivery.objects.filter(webhook__project=project).select_related("webhook")
    owners = set(
        project.memberships.filter(role=Role.OWNER, user__is_active=True).values_list("user", flat=True)
    )
    webhooks = list(project.webhooks.select_related("created_by").order_by("-created_at"))
    context = {
        "project": project,
        # They may know the secret, or own the address: the person who is an owner now decides.
        "left": [
            webhook for webhook in webhooks if webhook.created_by_id and webhook.created_by_id not in owners
        ],
        "deliveries": deliveries.order_by("-created_at", "-pk")[:_NEWEST],
        "form": form,
        **more,
    }
    base = reverse("webhooks:webhook-list", args=[project.slug])
    table = WebhookTable(request, project.webhooks.all(), base=base, project=project)
    return table.response("webhooks/webhook_list.html", context, status=status)
