"""Does a reward study: the reward service scores trajectories, then weights are fitted or the reward is analysed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from touchstone_client import Refused, RewardServiceError
from touchstone_client.retries import PATIENT

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Cancelled, JobHeartbeat, JobState, finish, keep_heartbeat
from apps.reward_studies.analysis_report import (
    AnalysedReward,
    ProbedTrajectory,
    StudiedTrajectory,
    analysis_report,
)
from apps.reward_studies.models import RewardStudy
from apps.reward_studies.services import PROBE_NAMES, StudyOptions, study_options
from apps.reward_studies.study_feedback import StoredFeedback, sampled_keys, study_feedback
from apps.reward_studies.text_features import text_features
from apps.reward_studies.weight_report import WeightFeedback, weight_report
from apps.rewards import remote
from apps.rewards.specs import CheckedSpec, checked_spec
from apps.trajectories.models import Trajectory
from apps.trajectories.selectors import load_trajectories
from workers.errors import RewardError

BATCH, BATCH_TOKENS = 200, 100_000
MAX_LEFT_OUT = 100  # trajectories that cannot be scored
_POINTER = "/trajectory_ids/"
_TIMEOUT = 900.0  # seconds, of a batch
_FEWEST = 2


@dataclass
class TrajectoryScores:
    """Asks the reward service. left_out: by reason, how many trajectories could not be scored."""

    study: RewardStudy
    checked: CheckedSpec
    heartbeat: JobHeartbeat
    total: int
    done: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def score(self, keys: Sequence[int], *, probe: str | None = None, note: str) -> dict[int, dict[str, Any]]:
        """Results by key. Raises DomainError where the service cannot score, Cancelled."""
        found: dict[int, dict[str, Any]] = {}
        for batch in _batches(keys):
            self.heartbeat.progress = {"done": self.done, "total": self.total, "note": note}
            self.heartbeat.check()
            found |= self._score_batch(batch, probe)
            self.done += len(batch)
        return found

    def _score_batch(self, batch: list[int], probe: str | None) -> dict[int, dict[str, Any]]:
        keys = list(batch)
        while keys:
            try:
                results = remote.dry_run(
                    self.study.project,
                    spec=self.checked.spec.to_builtins(),
                    artifacts=self.checked.artifacts,
                    judges={name: judge.pk for name, judge in self.checked.judges.items()},
                    trajectory_ids=[str(key) for key in keys],
                    details=True,
                    probe=probe,
                    retries=PATIENT,
                    timeout=_TIMEOUT,
                )
                return dict(zip(keys, results, strict=True))
            except Refused as error:
                place = _place(error)
                if place is None or place >= len(keys):
                    raise DomainError(f"The reward service cannot score by this spec: {error}") from error
                self.left_out[str(error)] += probe is None
                if self.left_out.total() > MAX_LEFT_OUT:
                    raise DomainError(
                        f"More than {MAX_LEFT_OUT} trajectories cannot be scored by this spec. The last one: {error}"
                    ) from error
                del keys[place]
                self.heartbeat.check()
            except RewardServiceError as error:
                raise DomainError(
                    f"The reward service does not answer: {error} Start the study again."
                ) from error
        return {}


def execute(study: RewardStudy) -> None:
    """Raises ClaimLost, Interrupted."""
    with keep_heartbeat(study) as heartbeat:
        try:
            checked = checked_spec(project=study.project, spec=study.spec)
            do = _fit if study.kind == RewardStudy.Kind.WEIGHTS else _analyse
            finish(study, JobState.SUCCEEDED, progress={}, result=do(study, checked, heartbeat))
        except (DomainError, RewardError) as error:
            finish(study, JobState.FAILED, error=error.message)
        except Cancelled:
            finish(study, JobState.CANCELLED)


def _fit(study: RewardStudy, checked: CheckedSpec, heartbeat: JobHeartbeat) -> dict[str, Any]:
    options = study_options(study)
    feedback = study_feedback(study)
    form = feedback.form(options.feedback)
    keys = sampled_keys(study, feedback)
    scores = TrajectoryScores(study, checked, heartbeat, len(keys))
    results = scores.score(keys, note="scoring trajectories")
    heartbeat.progress = {"done": len(keys), "total": len(keys), "note": "fitting weights"}
    heartbeat.check()
    report = weight_report(
        _weight_feedback(feedback, form, checked, results),
        penalty=options.penalty,
        allow_negative=options.allow_negative,
    )
    return report | {"left_out": _left_out(scores.left_out, feedback.unknown)}


def _weight_feedback(
    feedback: StoredFeedback, form: str, checked: CheckedSpec, results: dict[int, dict[str, Any]]
) -> WeightFeedback:
    parts = [part for part in checked.spec.components if part.weight]
    keys = list(results)
    place = {key: number for number, key in enumerate(keys)}
    tasks = dict(Trajectory.objects.filter(pk__in=keys).values_list("pk", "task_id"))
    numbers = {task: number for number, task in enumerate(dict.fromkeys(tasks[key] for key in keys))}
    return WeightFeedback(
        names=[part.name for part in parts],
        values=np.array([[results[key]["values"][part.name] for part in parts] for key in keys]).reshape(
            len(keys), len(parts)
        ),
        tasks=np.array([numbers[tasks[key]] for key in keys], dtype=np.int64),
        current=np.array([part.weight for part in parts]),
        form=form,  # type: ignore[arg-type]
        comparisons=[
            (place[first], place[second], preferred)
            for first, second, preferred in (feedback.comparisons if form == "comparisons" else ())
            if first in place and second in place
        ],
        labels=[(place[key], label) for key, label in feedback.labels(form) if key in place],
    )


def _analyse(study: RewardStudy, checked: CheckedSpec, heartbeat: JobHeartbeat) -> dict[str, Any]:
    options = study_options(study)
    keys = sampled_keys(study)
    scores = TrajectoryScores(study, checked, heartbeat, len(keys) * (1 + len(PROBE_NAMES) * options.probes))
    results = scores.score(keys, note="scoring trajectories")
    if len(results) < _FEWEST:
        reasons = "; ".join(scores.left_out) or "no trajectory is chosen"
        raise DomainError(f"{len(results)} trajectories could be scored, and two are needed: {reasons}.")
    scored = [
        _scored(results[key], trajectory)
        for chunk in _chunks(list(results))
        for key, trajectory in load_trajectories(chunk).items()
    ]
    names = [part.name for part in checked.spec.components if part.weight]
    probes = _probed(scored, scores, options)
    heartbeat.progress = {"done": scores.total, "total": scores.total, "note": "computing the analysis"}
    heartbeat.check()
    report = analysis_report(AnalysedReward(names, scored, probes))
    return report | {"left_out": _left_out(scores.left_out, 0)}


def _probed(
    scored: Sequence[StudiedTrajectory], scores: TrajectoryScores, options: StudyOptions
) -> dict[str, list[ProbedTrajectory]]:
    probes: dict[str, list[ProbedTrajectory]] = {}
    for probe in PROBE_NAMES if options.probes else ():
        place = {row.key: number for number, row in enumerate(scored)}
        changed = scores.score([*place], probe=probe, note=f"scoring trajectories changed by {probe}")
        probes[probe] = [
            ProbedTrajectory(place[key], result["reward"], result["components"])
            for key, result in changed.items()
        ]
    return probes


def _scored(result: dict[str, Any], trajectory: Any) -> StudiedTrajectory:
    return StudiedTrajectory(
        key=int(trajectory.id),
        task=trajectory.task.id,
        reward=result["reward"],
        contributions=result["components"],
        steps=result["component_steps"],
        step_indices=trajectory.agent_steps,
        features=text_features(trajectory),
    )


def _left_out(reasons: Counter[str], unknown: int) -> list[dict[str, Any]]:
    found = [{"reason": reason, "count": count} for reason, count in reasons.most_common(10)]
    if unknown:
        found.append({"reason": "records of trajectories that are no longer stored", "count": unknown})
    return found


def _place(error: Refused) -> int | None:
    """The trajectory that an error is about."""
    pointer = str((error.problem or {}).get("pointer") or "")
    number = pointer.removeprefix(_POINTER).split("/")[0]
    return int(number) if pointer.startswith(_POINTER) and number.isdecimal() else None


def _batches(keys: Sequence[int]) -> Iterator[list[int]]:
    """By number and by tokens."""
    for chunk in _chunks(keys):
        tokens = dict(Trajectory.objects.filter(pk__in=chunk).values_list("pk", "token_count"))
        batch: list[int] = []
        held = 0
        for key in chunk:
            if key not in tokens:  # deleted since
                continue
            if batch and held + tokens[key] > BATCH_TOKENS:
                yield batch
                batch, held = [], 0
            batch.append(key)
            held += tokens[key]
        if batch:
            yield batch


def _chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), BATCH):
        yield keys[start : start + BATCH]
