"""What upper apps show at the steps of a trajectory, on its page."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from apps.core.registries import Registry
from apps.trajectories.models import Trajectory

# By index of a step, HTML below its content.
StepMarks = Callable[[Trajectory], Mapping[int, SafeString]]
_SOURCES: Registry[StepMarks] = Registry()


def register(source: StepMarks) -> None:
    """From an AppConfig.register."""
    _SOURCES.add(source)


def step_marks(trajectory: Trajectory) -> dict[int, SafeString]:
    found: dict[int, list[SafeString]] = defaultdict(list)
    for source in _SOURCES:
        for index, html in source(trajectory).items():
            found[index].append(html)
    return {index: format_html_join("", "{}", ((html,) for html in each)) for index, each in found.items()}
