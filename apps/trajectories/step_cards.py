"""Cards of stored steps. What renders them takes its time to load, so nothing that every process has imports this."""

from collections.abc import Iterable

from apps.trajectories.attachments import attachments_by_digest, last_image_digest, named_digests
from apps.trajectories.card_rendering import StepCard, render_step_card, with_marks
from apps.trajectories.clicks import click_marks
from apps.trajectories.models import Attachment, Step, Trajectory
from apps.trajectories.rendering import one_page
from apps.trajectories.serialization import to_step
from workers import schema

PAGE = 20  # steps brought at a time


def step_cards(
    trajectory_id: int, start: int = 0, stop: int | None = None, *, full: bool = False
) -> list[StepCard]:
    """Cards of the steps from `start` up to `stop`, for trajectories/_steps.html. full: nothing is cut."""
    rows = Step.objects.filter(trajectory=trajectory_id, index__gte=start).order_by("index")
    if stop is not None:
        rows = rows.filter(index__lte=stop)  # one more: where it acts is drawn on what was seen before it
    cards = render_step_cards(trajectory_id, rows, full=full)
    return cards if stop is None else cards[: stop - start]


def render_step_cards(trajectory_id: int, rows: Iterable[Step], *, full: bool = False) -> list[StepCard]:
    """Cards of steps that follow each other. What the next step acts on is drawn on the picture before it."""
    found = [(row, to_step(row)) for row in rows]
    steps = [step for _, step in found]
    rows_by_digest = _attachments(trajectory_id, steps)
    attached = {digest: row.media_type for digest, row in rows_by_digest.items()}
    with one_page():
        cards = [
            render_step_card(step, row.index, row.agent_step, full=full, attached=attached)
            for row, step in found
        ]
    return _with_clicks(cards, steps, rows_by_digest)


def _attachments(trajectory_id: int, steps: list[schema.Step]) -> dict[str, Attachment]:
    """Of the trajectory's own project, by digest."""
    if not (digests := named_digests(steps)):
        return {}
    project = Trajectory.objects.values_list("project_id", flat=True).get(pk=trajectory_id)
    return attachments_by_digest(project, digests)


def _with_clicks(
    cards: list[StepCard], steps: list[schema.Step], attachments: dict[str, Attachment]
) -> list[StepCard]:
    """The cards with what the next step acts on drawn on the last picture of each."""
    last = {place: digest for place, step in enumerate(steps[:-1]) if (digest := last_image_digest(step))}
    if not any(steps[place + 1].tool_calls for place in last):
        return cards
    sizes = {
        digest: (row.width, row.height) for digest, row in attachments.items() if row.width and row.height
    }
    for place, digest in last.items():
        if digest in sizes:
            size = sizes[digest]
            marks = click_marks(steps[place + 1].tool_calls, steps[place].observation, size)
            cards[place] = with_marks(cards[place], marks, digest, size) if marks else cards[place]
    return cards
