"""What is not there, with the bar of the project that the address names."""

from typing import Any

from django.http import Http404, HttpResponse

from apps.accounts.access import membership_for
from apps.accounts.gates import project_refusal
from apps.core.http.middleware import page_not_found


def project_page_not_found(request: Any, exception: Exception) -> HttpResponse:
    """The 404 page. No view has looked up the membership where no address matched."""
    parts = request.path.split("/", 3)  # "", "p", SLUG, the rest
    is_below_project = len(parts) == 4 and parts[1] == "p"
    if is_below_project and not hasattr(request, "membership") and request.user.is_authenticated:
        try:
            membership = membership_for(request.user, parts[2])
        except Http404:
            return page_not_found(request, exception)
        if project_refusal(request, membership.project) is None:
            request.membership = membership
    return page_not_found(request, exception)
