"""What the page of a trajectory shows about all of its steps: a bounded minimap, speakers, usage."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apps.trajectories.notes import Note
from apps.trajectories.outline import SpeakerSteps, StepMark, speaker_steps, step_marks
from apps.trajectories.step_usage import UsageSummary, summarize_usage
from workers.schema import Step

MAX_MARKS = 480  # of a minimap; longer trajectories have several steps in each


@dataclass(frozen=True, slots=True)
class StepOverview:
    """failures: indices of all failed steps. per_mark: steps in each mark."""

    marks: list[StepMark]
    per_mark: int
    failures: list[int]
    speakers: list[SpeakerSteps]
    usage: UsageSummary | None


def step_overview(steps: Sequence[Step], notes: Sequence[Note] = ()) -> StepOverview:
    marks = step_marks(steps, notes)
    per_mark = -(-len(marks) // MAX_MARKS)
    return StepOverview(
        [_merged(marks[start : start + per_mark]) for start in range(0, len(marks), per_mark)],
        per_mark,
        [mark.index for mark in marks if mark.failed],
        speaker_steps(steps),
        summarize_usage((index, step.metrics) for index, step in enumerate(steps) if step.metrics),
    )


def _merged(marks: list[StepMark]) -> StepMark:
    """One mark for several steps: at the first that failed, else the first with a note, else the first of the agent."""
    if len(marks) == 1:
        return marks[0]
    chosen = next((mark for mark in marks if mark.failed), None)
    chosen = chosen or next((mark for mark in marks if mark.note_count), None)
    chosen = chosen or next((mark for mark in marks if mark.source == "agent"), marks[0])
    rewards = [mark.reward for mark in marks if mark.reward is not None]
    return replace(
        chosen,
        note_count=sum(mark.note_count for mark in marks),
        reward=max(rewards, key=abs) if rewards else None,
        last=marks[-1].index,
        first=marks[0].index,
    )
