"""A retraining cycle as a list of stages, and the durations of past ones as bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.annotation.feedback.records import BY_JUDGES
from apps.annotation.models import Annotation
from apps.retraining.models import RetrainingCycle

Stage = RetrainingCycle.Stage
_TIMED_STAGES = (Stage.FREEZING, Stage.TRAINING, Stage.COMPARING, Stage.TRYING)


@dataclass(frozen=True, slots=True)
class CycleStage:
    """state: done, now, ready (awaits confirmation), or next. seconds: the time it took."""

    stage: str
    label: str
    state: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class StageSpan:
    """A stage as a bar. begin, width: of the chart. colour: the number of a token."""

    label: str
    seconds: float
    begin: str
    width: str
    colour: int


@dataclass(frozen=True, slots=True)
class CycleDuration:
    """seconds: from the last annotation to the served reward, None without annotations. work: of the bars."""

    cycle: RetrainingCycle
    seconds: float | None
    work: float
    spans: list[StageSpan]


def cycle_stages(cycle: RetrainingCycle) -> list[CycleStage]:
    """In their order. Of a stopped cycle, those that it entered."""
    stages = [stage for stage in Stage if stage != Stage.STOPPED]
    times = {name: datetime.fromisoformat(at) for name, at in cycle.stage_times.items()}
    entered = [stage for stage in stages if stage in times]
    found = []
    for stage in stages:
        if stage not in times:
            if cycle.is_open and not (stage == Stage.ASKING and entered):
                found.append(CycleStage(stage, stage.label, "next", None))
            continue
        later = [at for at in times.values() if at > times[stage]]
        end = min(later, default=None if stage == cycle.stage else times[stage])
        state = "done"
        if stage == cycle.stage and cycle.is_open:
            state = "ready" if cycle.awaits_confirmation else "now"
        seconds = None if end is None or stage == Stage.DONE else (end - times[stage]).total_seconds()
        found.append(CycleStage(stage, stage.label, state, seconds))
    return found


def seconds_to_served(cycle: RetrainingCycle) -> float | None:
    """From the last annotation that it learned from to the promotion of the model; None where it was not promoted."""
    if cycle.stage != Stage.DONE or cycle.ended_at is None:
        return None
    annotations = Annotation.objects.filter(
        assignment__item__campaign__project=cycle.endpoint.project,
        created_at__lt=cycle.stage_times["freezing"],
    )
    last = annotations.exclude(BY_JUDGES).order_by("-created_at").values_list("created_at", flat=True).first()
    return None if last is None else (cycle.ended_at - last).total_seconds()


def cycle_durations(cycles: Sequence[RetrainingCycle]) -> list[CycleDuration]:
    """Of cycles that were promoted, in their order; the longest fills the width."""
    timed = [
        (
            cycle,
            [
                stage
                for stage in cycle_stages(cycle)
                if stage.seconds is not None and stage.stage in _TIMED_STAGES
            ],
        )
        for cycle in cycles
    ]
    longest = max((sum(stage.seconds or 0 for stage in stages) for _, stages in timed), default=0) or 1.0
    return [_duration(cycle, stages, longest) for cycle, stages in timed]


def _duration(cycle: RetrainingCycle, stages: Sequence[CycleStage], longest: float) -> CycleDuration:
    spans, begin = [], 0.0
    for stage in stages:
        seconds = stage.seconds or 0
        width = 100 * seconds / longest
        colour = _TIMED_STAGES.index(stage.stage) + 1
        spans.append(StageSpan(stage.label, seconds, f"{begin:.2f}%", f"{width:.2f}%", colour))
        begin += width
    return CycleDuration(cycle, seconds_to_served(cycle), sum(span.seconds for span in spans), spans)
