"""The project's navigation: what the member may open, and the current page."""

from typing import Any, NamedTuple

from django import template
from django.urls import reverse

from apps.accounts.models import Membership, Project, Role

register = template.Library()

# label, URL name, least role
ROOMS = [
    ("Home", "accounts:project-home", Role.ANNOTATOR),
    ("Trajectories", "trajectories:trajectory-list", Role.RESEARCHER),
    ("Rubrics", "rubrics:rubric-list", Role.RESEARCHER),
    ("Campaigns", "annotation:campaign-list", Role.ANNOTATOR),
    ("Metrics", "metrics:induction-list", Role.RESEARCHER),
    ("Judges", "judges:judge-list", Role.RESEARCHER),
    ("Datasets", "datasets:dataset-version-list", Role.RESEARCHER),
    ("Runs", "training:run-list", Role.RESEARCHER),
    ("Models", "training:model-list", Role.RESEARCHER),
    ("Endpoints", "rewards:endpoint-list", Role.RESEARCHER),
    ("Alerts", "monitoring:alert-list", Role.RESEARCHER),
]


class NavItem(NamedTuple):
    label: str
    url: str
    current: bool


@register.inclusion_tag("core/_nav.html", takes_context=True)
def project_nav(context: template.RequestContext, project: Project) -> dict[str, Any]:
    request = context["request"]
    membership: Membership | None = getattr(request, "membership", None)
    role = Role(membership.role) if membership else Role.ANNOTATOR
    items = []
    for label, name, least in ROOMS:
        if not role.includes(least):
            continue
        url = reverse(name, args=[project.slug])
        here = request.path == url or (label != "Home" and request.path.startswith(url))
        items.append(NavItem(label, url, here))
    return {"items": items}
