"""What is stored of a run's jobs on a cluster: enough for another worker to go on with."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from apps.training.models import LOCAL, TrainingRun
from workers.launch.job import Handle


@dataclass(frozen=True, slots=True)
class LaunchedState:
    """submission: the number of the newest job, from 1; it is stored before the job is submitted.
    handle: of the launcher, None while it is being submitted. is_open: that job may still run.
    starts: of the run when it was submitted. checkpoint: the index of outputs that was the newest then.
    stalled: submissions in a row that brought no new checkpoint. phase, reason: for people.
    """

    submission: int = 0
    handle: Handle | None = None
    is_open: bool = False
    starts: int = 0
    checkpoint: int = 0
    stalled: int = 0
    phase: str = ""
    reason: str = ""

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        return cls(**{each.name: stored[each.name] for each in fields(cls) if each.name in stored})

    def values(self) -> dict[str, Any]:
        return asdict(self)

    def with_(self, **changes: Any) -> Self:
        return replace(self, **changes)


def has_open_job(run: TrainingRun) -> bool:
    return run.launcher != LOCAL and LaunchedState.read(run.launched).is_open


def job_in_words(run: TrainingRun) -> str:
    """For pages: the job of a run on a cluster; empty for other runs."""
    if run.launcher == LOCAL:
        return ""
    state = LaunchedState.read(run.launched)
    number = (state.handle or {}).get("job") or (state.handle or {}).get("name") or ""
    words = f"Job {number} on {run.launcher}".replace("  ", " ")
    if run.is_finished or not state.is_open:
        return words if number else f"On {run.launcher}"
    said = f"{words}: {state.phase or 'being submitted'}"
    if state.reason:
        said += f" ({state.reason.rstrip('.')})"
    return f"{said}; submitted {state.submission} times" if state.submission > 1 else said
