"""Comments of one step, from those of a page."""

from django import template

from apps.trajectories.models import TrajectoryComment

register = template.Library()


@register.filter
def of_step(comments: dict[int, list[TrajectoryComment]] | None, index: int) -> list[TrajectoryComment]:
    return (comments or {}).get(index, [])
