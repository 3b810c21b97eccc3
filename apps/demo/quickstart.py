"""From a file to an endpoint that answers with a reward: what the command `quickstart` does, one stage a function."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from touchstone_client import RewardClient, RewardServiceError

from apps.accounts import keys
from apps.accounts import services as accounts
from apps.accounts.models import Project, Scope
from apps.annotation.feedback.services import import_feedback
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.core.storage.unpacking import bounds_of_operator
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.datasets.services import freeze_dataset
from apps.datasets.version_builder import build_dataset_version
from apps.demo.feedback_files import LEAST, FeedbackFile
from apps.demo.loop import follow_run
from apps.rewards.models import EndpointRevision
from apps.rewards.remote import wait_until_served
from apps.rewards.services import deploy
from apps.training.deploy_checks import failed_checks, model_report
from apps.training.models import RewardModel, TrainingRun
from apps.training.services import start_run
from apps.trajectories.services import import_trajectories
from workers.schema import (
    FeedbackRecord,
    OutcomeRecord,
    PreferenceRecord,
    RankingRecord,
    Trajectory,
    to_messages,
)

LEAST_TASKS = 5  # so that some are held out, from which the report is computed
SERVED_SECONDS = 120.0
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ImportedFile:
    created: int
    duplicates: int
    rejected: list[dict[str, Any]]


def find_project(slug: str) -> Project:
    """The project of that slug, made if there is none."""
    return Project.objects.filter(slug=slug).first() or accounts.create_project(slug=slug)


def import_file(
    project: Project, file: FeedbackFile, *, keep_good: bool, progress: Progress = lambda done: None
) -> ImportedFile:
    """Raises DomainError where a record is wrong, unless `keep_good`; then nothing is imported."""
    with file.opened() as source:
        if file.reader and not isinstance(source, Path):
            feedback = import_feedback(
                project=project,
                stream=source,
                format=file.reader,
                by=None,
                campaign=f"Quickstart: {file.path.name}",
                keep_good=keep_good,
                progress=progress,
            )
            imported = ImportedFile(feedback.created, feedback.duplicates, feedback.rejected)
        else:
            result = import_trajectories(
                project=project,
                stream=source,
                by=None,
                keep_good=keep_good,
                progress=progress,
                bounds=bounds_of_operator(),
            )
            imported = ImportedFile(result.created, result.duplicates, result.rejected)
    if imported.rejected and not keep_good:
        raise DomainError(_rejected(file.path, imported.rejected))
    return imported


def _rejected(path: Path, rejected: list[dict[str, Any]]) -> str:
    first = rejected[0]
    where = f" at {first['pointer']}" if first["pointer"] else ""
    others = f", and {len(rejected) - 1} more records are wrong" if len(rejected) > 1 else ""
    return (
        f"{path}, line {first['line']}{where}: {first['message'].rstrip('.')}{others}. Nothing was imported."
    )


def freeze(project: Project, name: str, *, progress: Progress = lambda done: None) -> DatasetVersion:
    dataset_version = freeze_dataset(project=project, name=name, by=None, claimed=True)
    build_dataset_version(dataset_version, report=progress)
    return dataset_version


def require_enough(dataset_version: DatasetVersion) -> None:
    """Raises DomainError where nothing can be learnt from it, in words that say what is missing."""
    records, tasks = dataset_version.records, sum(dataset_version.tasks.values())
    if not sum(records.values()):
        raise DomainError(
            "The file has trajectories, and neither outcomes nor feedback, so there is nothing to learn a reward from. "
            "Add what is known of each (`success`), or have people compare them in a campaign."
        )
    if dataset_version.learnable_records < LEAST:
        counts = ", ".join(f"{count} {kind}" for kind, count in records.items() if count)
        others = dataset_version.learnable_records - dataset_version.usable_pairs
        raise DomainError(
            f"The file has {dataset_version.usable_pairs} comparisons with a winner and {others} other records to "
            f"learn from ({counts}); at least {LEAST} are needed. Ties and comments are not learnt from."
        )
    if tasks < LEAST_TASKS or not dataset_version.tasks.get("test"):
        raise DomainError(
            f"The file has {tasks} {'task' if tasks == 1 else 'tasks'} (different prompts); at least {LEAST_TASKS} are "
            "needed, because the model is measured on tasks that it has not learnt from."
        )
    if dataset_version.learnable_records == records.get("outcome"):
        _require_both_outcomes(dataset_version)


def _require_both_outcomes(dataset_version: DatasetVersion) -> None:
    records = read_dataset_records(dataset_version)
    values = Counter((each.success, each.reward) for each in records if isinstance(each, OutcomeRecord))
    if len(values) == 1:
        (((success, _), count),) = values.items()
        how = "a success" if success else "a failure"
        raise DomainError(
            f"Each of the {count} trajectories is {how}, so there is no difference to learn. Add runs that "
            "ended otherwise."
        )


def train(
    dataset_version: DatasetVersion,
    *,
    recipe: str | None,
    check: Callable[[], None],
    tell: Callable[[TrainingRun], None],
) -> RewardModel:
    run = start_run(project=dataset_version.project, dataset_version=dataset_version, recipe=recipe, by=None)
    follow_run(run, check=check, tell=tell)
    if run.state != JobState.SUCCEEDED:
        raise DomainError(f"The training run {run.pk} {run.state}: {run.error}")
    return run.model


def put_on_endpoint(model: RewardModel, endpoint: str, *, reason: str) -> EndpointRevision:
    """Raises DomainError where the report shows no model worth serving and no reason is given, or it is not served."""
    failed = failed_checks(model_report(model))
    if failed and not reason:
        raise DomainError(f"{model} was trained and is not deployed. {' '.join(failed)}")
    revision = deploy(model=model, endpoint_name=endpoint, project=model.project, by=None, reason=reason)
    served, note = wait_until_served(revision, seconds=SERVED_SECONDS)
    if not served:
        raise DomainError(f"{note[0].upper()}{note[1:]}.")
    return revision


def make_key(project: Project) -> str:
    return keys.create_api_key(project=project, scopes=[Scope.REWARD], name="quickstart")[1]


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Rewards that came over HTTP: of the better and the worse one of a comparison, or of one trajectory."""

    rewards: list[float]
    what: str


def score_held_out(
    url: str, key: str, revision: EndpointRevision, dataset_version: DatasetVersion
) -> HeldOutScores:
    """Of the first held-out record, as a trainer would ask for it."""
    record = next(iter(read_dataset_records(dataset_version, "test")))
    trajectories, what = _contents(record)
    inputs = [{"messages": to_messages(trajectory)} for trajectory in trajectories]
    try:
        with RewardClient(url, revision.endpoint.name, key) as client:
            results = client.score(inputs, version=revision.number).results
    except RewardServiceError as error:
        raise DomainError(f"Scoring over HTTP failed: {error}") from error
    rewards = [result.reward for result in results]
    if not all(math.isfinite(reward) for reward in rewards):
        raise DomainError(f"The endpoint answered with {rewards}.")
    return HeldOutScores(rewards, what)


def _contents(record: FeedbackRecord) -> tuple[list[Trajectory], str]:
    if isinstance(record, PreferenceRecord):
        sides = [record.a, record.b] if record.choice != "b" else [record.b, record.a]
        is_decided = record.choice in ("a", "b")
        return sides, "the better and the worse answer" if is_decided else "two answers"
    if isinstance(record, RankingRecord):
        return list(record.trajectories[:2]), "two answers"
    return [record.trajectory], "a trajectory"
