"""Comments of one step, from those of a page."""

from django import template
from django.utils.safestring import SafeString

from apps.trajectories.models import TrajectoryComment

register = template.Library()


@register.filter
def of_step(comments: dict[int, list[TrajectoryComment]] | None, index: int) -> list[TrajectoryComment]:
    return (comments or {}).get(index, [])


@register.filter
def mark_of(marks: dict[int, SafeString] | None, index: int) -> SafeString | str:
    """What upper apps show at the step."""
    return (marks or {}).get(index, "")
