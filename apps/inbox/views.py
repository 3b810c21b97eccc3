"""The inbox of a person, over all their projects."""

from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from apps.accounts.gates import unmet_rules
from apps.accounts.models import User
from apps.accounts.selectors import memberships_of
from apps.core.errors import NotFound
from apps.core.http.api import paginate
from apps.inbox import services
from apps.inbox.forms import NotificationFilterForm, PreferenceForm
from apps.inbox.models import Notification
from apps.inbox.selectors import own_notifications, unread_count

PAGE = 50


@login_required
@require_safe
@never_cache
def notification_list(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    memberships = memberships_of(user)
    projects = [(row.project.slug, row.project.name) for row in memberships]
    form = NotificationFilterForm(request.GET, projects=projects)
    chosen = form.cleaned_data if form.is_valid() else {}
    unmet = unmet_rules(request)
    rows = own_notifications(
        user,
        unmet_rules=unmet,
        project=chosen.get("project", ""),
        event=chosen.get("event", ""),
        only_unread=chosen.get("show") == "unread",
    )
    if not form.is_valid():  # a filter that does not exist finds nothing
        rows = rows.none()
    page, following = paginate(rows, cursor=request.GET.get("cursor"), limit=PAGE, field=None)
    filters = request.GET.copy()
    filters.pop("cursor", None)
    context = {
        "notifications": page,
        "form": form,
        "following": following,
        "filters": filters.urlencode(),
        "is_filtered": any(chosen.values()),
        "unread": unread_count(user, unmet_rules=unmet),
        "hidden": [row.project for row in memberships if any(getattr(row.project, rule) for rule in unmet)],
    }
    return render(request, "inbox/notification_list.html", context, status=200 if form.is_valid() else 422)


@login_required
@require_POST
def notification_read(request: HttpRequest) -> HttpResponse:
    """Mark the chosen notifications as read, or all of them."""
    user = cast(User, request.user)
    rows = own_notifications(user, unmet_rules=unmet_rules(request))
    if "all" not in request.POST:
        ids = [int(pk) for pk in request.POST.getlist("notification") if pk.isdecimal() and len(pk) < 19]
        rows = rows.filter(pk__in=ids)
    count = services.mark_read(user=user, notifications=Notification.objects.filter(pk__in=rows.values("pk")))
    messages.success(request, f"{count} notification{'' if count == 1 else 's'} marked as read.")
    return redirect("inbox:notification-list")


@login_required
@require_GET
@never_cache
def notification_open(request: HttpRequest, pk: int) -> HttpResponse:
    """Mark a notification as read and go to what it is about."""
    user = cast(User, request.user)
    found = own_notifications(user, unmet_rules=unmet_rules(request)).filter(pk=pk).first()
    if found is None:
        raise NotFound(
            "This notification does not exist, or its project does not let you see it: you left it, have another role "
            "now, or must sign in as it requires."
        )
    services.mark_read(user=user, notifications=Notification.objects.filter(pk=pk))
    return redirect(found.path)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def preference_edit(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = PreferenceForm(request.POST or None, chosen=services.preferences(user))
    if request.method == "POST" and form.is_valid():
        services.save_preferences(user=user, chosen=form.chosen())
        messages.success(request, "Your choice of notifications is saved.")
        return redirect("inbox:preference-edit")
    context = {"form": form, "sends_mail": settings.MAIL}
    return render(request, "inbox/preference_edit.html", context, status=422 if form.errors else 200)
