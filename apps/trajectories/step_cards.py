"""Cards of stored steps. What renders them takes its time to load, so nothing that every process has imports this."""

from apps.trajectories.attachments import last_picture
from apps.trajectories.cards import StepCard, card_of, with_marks
from apps.trajectories.clicks import marks_of
from apps.trajectories.models import Attachment, Step
from apps.trajectories.rows import to_step
from workers import schema

PAGE = 20  # steps brought at a time


def step_cards(
    trajectory_id: int, start: int = 0, stop: int | None = None, *, full: bool = False
) -> list[StepCard]:
    """Cards of the steps from `start` up to `stop`, for trajectories/_steps.html. full: nothing is cut."""
    rows = Step.objects.filter(trajectory=trajectory_id, index__gte=start).order_by("index")
    if stop is not None:
        rows = rows.filter(index__lte=stop)  # one more: where it acts is drawn on what was seen before it
    found = [(row, to_step(row)) for row in rows]
    cards = [card_of(step, row.index, row.agent_step, full=full) for row, step in found]
    cards = _with_clicks(trajectory_id, cards, [step for _, step in found])
    return cards if stop is None else cards[: stop - start]


def _with_clicks(trajectory_id: int, cards: list[StepCard], steps: list[schema.Step]) -> list[StepCard]:
    """The cards with what the next step acts on drawn on the last picture of each."""
    last = {place: digest for place, step in enumerate(steps[:-1]) if (digest := last_picture(step))}
    if not any(steps[place + 1].tool_calls for place in last):
        return cards
    rows = Attachment.objects.filter(project__trajectories=trajectory_id, sha256__in=set(last.values()))
    sizes = {row.sha256: (row.width, row.height) for row in rows if row.width and row.height}
    for place, digest in last.items():
        if digest in sizes:
            size = sizes[digest]
            marks = marks_of(steps[place + 1].tool_calls, steps[place].observation, size)
            cards[place] = with_marks(cards[place], marks, digest, size) if marks else cards[place]
    return cards
