"""Does what is queued for reward programs."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.reward_programs.drafts import draft
from apps.reward_programs.models import RewardProgramJob
from apps.reward_programs.selectors import sampled_keys
from apps.reward_programs.services import DryRunOptions, record_passed_dry_run
from apps.trajectories.selectors import load_trajectories
from workers.errors import RewardError
from workers.programs.plain_items import plain_item
from workers.programs.sandbox import ProgramFailure, ProgramResult, run_program
from workers.programs.source import read_program
from workers.schema import ScoreInput

BATCH = 100
ALONE = 20  # trajectories whose value is computed a second time, without the others
_MOST_FAILURES = 20  # kinds that are listed
_MOST_ROWS = 10  # of the lowest and of the highest values
_NOT_ALONE = "the value depends on the inputs before it"


@dataclass
class ProgramTrial:
    """What was found so far. failures: by what happened, the trajectories; a sentence without text of theirs."""

    values: dict[int, float] = field(default_factory=dict)
    failures: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, key: int, count: int, result: ProgramResult | ProgramFailure) -> None:
        if isinstance(result, ProgramFailure):
            self.fail(key, result.summary)
        elif result.steps is not None and len(result.steps) != count:
            self.fail(key, "step_rewards did not return a number for each agent step")
        else:
            self.values[key] = result.reward

    def fail(self, key: int, summary: str) -> None:
        self.failures.setdefault(summary, []).append(key)

    def report(self) -> dict[str, Any]:
        failed = sum(map(len, self.failures.values()))
        total = len(self.values) + failed
        order = sorted(self.values, key=lambda key: (self.values[key], key))
        numbers = [self.values[key] for key in order]
        common = sorted(self.failures.items(), key=lambda entry: -len(entry[1]))
        return {
            "passed": bool(numbers) and not failed,
            "trajectories": total,
            "failed": failed,
            "milliseconds": round(1000 * self.seconds / max(total, 1), 3),
            "failures": [
                {"reason": reason, "count": len(keys), "trajectories": keys[:3]}
                for reason, keys in common[:_MOST_FAILURES]
            ],
            "values": _summary(numbers),
            "lowest": [
                {"trajectory": key, "value": self.values[key]} for key in order[:-_MOST_ROWS][:_MOST_ROWS]
            ],
            "highest": [{"trajectory": key, "value": self.values[key]} for key in order[::-1][:_MOST_ROWS]],
        }


def execute(job: RewardProgramJob) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(job) as heartbeat:
        try:
            if job.kind == RewardProgramJob.Kind.DRAFT:
                result = draft(job, heartbeat)
            else:
                result = _dry_run(job, heartbeat)
                if result["passed"]:
                    with job_queue.fenced(job):
                        record_passed_dry_run(job)
            finish(job, JobState.SUCCEEDED, progress={}, result=result)
        except (DomainError, RewardError) as error:
            finish(job, JobState.FAILED, error=error.message)
        except Cancelled:
            finish(job, JobState.CANCELLED)


def _dry_run(job: RewardProgramJob, heartbeat: JobHeartbeat) -> dict[str, Any]:
    options = msgspec.convert(job.options, DryRunOptions)
    keys = sampled_keys(job, options.filter, options.sample)
    if not keys:
        raise DomainError("No trajectory passes the filter. Change it, or import trajectories first.")
    assert job.program is not None
    found = ProgramTrial()
    for start in range(0, len(keys), BATCH):
        heartbeat.progress = {"done": start, "total": len(keys), "note": "running the program"}
        heartbeat.check()
        _try(
            found, job.program.code, keys[start : start + BATCH], options.seconds, alone=ALONE * (start == 0)
        )
    return found.report()


def _try(found: ProgramTrial, code: str, keys: Sequence[int], seconds: float, *, alone: int) -> None:
    """alone: of the first so many, the value must be the same without the others."""
    program = read_program(code)
    inputs = {key: ScoreInput(content=content) for key, content in load_trajectories(keys).items()}
    plain = {key: plain_item(item) for key, item in inputs.items()}
    start = time.perf_counter()
    results = dict(zip(plain, run_program(program, list(plain.values()), seconds), strict=True))
    found.seconds += time.perf_counter() - start
    for key in list(plain)[:alone]:
        (again,) = run_program(program, [plain[key]], seconds)
        if isinstance(again, ProgramResult) and again != results[key]:
            results[key] = ProgramFailure(_NOT_ALONE, _NOT_ALONE)
    for key, result in results.items():
        found.add(key, inputs[key].step_count, result)


def _summary(numbers: Sequence[float]) -> dict[str, float] | None:
    """None without any. numbers: in order."""
    if not numbers:
        return None
    return {
        "mean": statistics.fmean(numbers),
        "std": statistics.pstdev(numbers),
        "low": numbers[0],
        "median": statistics.median(numbers),
        "high": numbers[-1],
    }
