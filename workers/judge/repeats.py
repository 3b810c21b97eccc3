"""Windows of a trajectory, and which of them read the same."""

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from workers.prompts.pictures import NO_PICTURES, PictureLimits, TrajectoryView, view_trajectory
from workers.schema import Trajectory
from workers.schema.window_pairs import windows_of

WindowKey = tuple[str, tuple[str | None, ...]]


def view_window(run: Trajectory, start: int, end: int, limits: PictureLimits) -> TrajectoryView:
    """As a judge reads it, its steps counted from 0: equal for equal windows of a task."""
    return view_trajectory(replace(run, steps=run.steps[start:end]), limits)


def window_key(view: TrajectoryView) -> WindowKey:
    """Equal for windows that read the same: their text, and the pictures that go with it."""
    return view.text, tuple(place.source for place in view.chosen)


def step_repeats(run: Trajectory, limits: PictureLimits = NO_PICTURES) -> Iterator[int]:
    """Of each agent step, how many earlier ones read the same, with what followed them."""
    counts = Counter[WindowKey]()
    for start, end in windows_of(run, 1):
        key = window_key(view_window(run, start, end, limits))
        yield counts[key]
        counts[key] += 1
