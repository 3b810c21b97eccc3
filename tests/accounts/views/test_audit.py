"""The trail shows what happened, a page at a time."""

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from apps.accounts import services
from apps.accounts.models import Project


def test_the_trail_is_shown_newest_first_in_pages(as_: Callable[[str], Client], project: Project) -> None:
    for number in range(60):
        services.record_audit(project=project, actor=None, verb="thing.done", target=f"thing-{number}")
    url = reverse("accounts:audit-list", args=["desk"])
    first = as_("owner").get(url)
    assert "thing-59" in first.content.decode()
    second = as_("owner").get(url, {"cursor": first.context["next_cursor"]})
    shown = [event.pk for page in (first, second) for event in page.context["events"]]
    assert shown == list(project.audit_events.order_by("-at", "-pk").values_list("pk", flat=True))
    assert as_("owner").get(url, {"cursor": "nonsense"}).status_code == 400


def test_details_may_have_any_name(as_: Callable[[str], Client], project: Project) -> None:
    data = {"items": 3, "note": "<b>bold</b>"}
    services.record_audit(project=project, actor=None, verb="thing.done", data=data)
    page = as_("owner").get(reverse("accounts:audit-list", args=["desk"])).content.decode()
    assert "items: 3" in page
    assert "&lt;b&gt;bold" in page
