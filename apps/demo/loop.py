"""The parts of the demo, in order. Each looks first at what is there already: a second start repeats nothing."""

import hmac
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Q

from apps.accounts import services as accounts
from apps.accounts.models import Membership, Project, Role, Scope, User
from apps.accounts.selectors import api_key_for
from apps.annotation.feedback.services import import_feedback
from apps.annotation.models import Campaign
from apps.annotation.services.builder import ItemBuildOptions, build_items
from apps.annotation.services.campaigns import create_campaign
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.core.storage.storage_names import home_path
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.datasets.services import freeze_dataset
from apps.datasets.version_builder import build_dataset_version
from apps.demo.generate import FEEDBACK, SAMPLE
from apps.demo.world import hidden_reward
from apps.rewards.models import Endpoint, EndpointRevision
from apps.rewards.services import deploy
from apps.training.models import RewardModel, TrainingRun
from apps.training.services import start_run
from apps.trajectories.services import import_trajectories
from workers.schema import PreferenceRecord, to_messages

SLUG = DATASET = ENDPOINT = "sample"
# `auto` without the candidates that take minutes on a CPU.
RECIPE = {"search": ["linear", "hybrid", "frozen"]}
_DEMO_RUNS = Q(recipe__search=RECIPE["search"]) | Q(
    recipe_name="bradley-terry"
)  # the latter of earlier versions
CAMPAIGN = "Try it: which answer is better?"
OWNER, ANNOTATOR = "owner@sample.example", "annotator@sample.example"
TRAINING_SECONDS = 1200.0


@dataclass(frozen=True)
class Login:
    """password: None where someone has changed it since."""

    user: User
    password: str | None


@dataclass(frozen=True)
class Loaded:
    trajectories: int
    judgements: int
    new: int


def make_project() -> tuple[Project, Login, Login]:
    """The project `sample`, its owner and its annotator."""
    owner, annotator = _login(OWNER, "Sample owner"), _login(ANNOTATOR, "Sample annotator")
    project = Project.objects.filter(slug=SLUG).first()
    if project is None:
        project = accounts.create_project(slug=SLUG, name="Sample: a support desk", owner=owner.user)
    for login, role in ((owner, Role.OWNER), (annotator, Role.ANNOTATOR)):
        if not Membership.objects.filter(project=project, user=login.user).exists():
            accounts.set_member(project=project, user=login.user, role=role, by=None)
    return project, owner, annotator


def _login(email: str, name: str) -> Login:
    """The password follows from the installation's secret, so that every start can print it and no one can guess it."""
    password = hmac.new(settings.SECRET_KEY.encode(), f"demo {email}".encode(), "sha256").hexdigest()[:16]
    user = User.objects.filter(email=email).first()
    if user is None:
        user, _ = accounts.create_user(email=email, password=password, name=name)
    return Login(user, password if user.check_password(password) else None)


def make_key(project: Project, by: User) -> str:
    """A key that may score, kept in the home (0600) so that a second start prints the same."""
    path = home_path("demo-key")
    if path.exists():
        secret = path.read_text()
        key = api_key_for(secret)
        if key is not None and key.project_id == project.pk and Scope.REWARD in key.scopes:
            return secret
        path.unlink()
    _, secret = accounts.create_api_key(project=project, scopes=[Scope.REWARD], name="demo", by=by)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret)
    return secret


def load_sample(project: Project, by: User) -> Loaded:
    """The shipped trajectories and what was said of them, of every kind."""
    with (SAMPLE / "trajectories.jsonl").open("rb") as stream:
        trajectories = import_trajectories(project=project, stream=stream, format="openai", by=by)
    _refuse_rejected("trajectories", trajectories.rejected)
    judgements = new = 0
    for name in FEEDBACK:
        with (SAMPLE / f"{name}.jsonl").open("rb") as stream:
            result = import_feedback(project=project, stream=stream, format=name, by=by)
        _refuse_rejected(name, result.rejected)
        judgements, new = judgements + result.created + result.duplicates, new + result.created
    return Loaded(trajectories.created + trajectories.duplicates, judgements, trajectories.created + new)


def _refuse_rejected(name: str, rejected: list[dict[str, Any]]) -> None:
    if rejected:
        first = rejected[0]
        raise DomainError(
            f"{name}.jsonl, line {first['line']}: {first['message']} Generate the sample again."
        )


def make_campaign(project: Project, by: User) -> Campaign:
    """Something for the annotator's login to judge."""
    campaign = Campaign.objects.filter(project=project, name=CAMPAIGN).first()
    if campaign is None:
        campaign = create_campaign(
            project=project,
            name=CAMPAIGN,
            feedback_types=["pairwise", "comment"],
            by=by,
            guidelines="Which conversation would you rather have had as the customer, and as the owner of the shop? "
            "Look at what was done, whether the rules were kept, whether the answer is true, and how it is said.",
        )
        build_items(campaign=campaign, choice=ItemBuildOptions(per_task=1, differ="agent"))
    return campaign


def freeze(project: Project, by: User, *, again: bool) -> DatasetVersion:
    """The newest frozen dataset version, or with `again` (or where there is none) a fresh one."""
    frozen = DatasetVersion.objects.filter(project=project, name=DATASET, state=JobState.SUCCEEDED).order_by(
        "-version"
    )
    newest = frozen.first()
    if newest is not None and not again:
        return newest
    tasks = (SAMPLE / "test_tasks.txt").read_text().split()
    dataset_version = freeze_dataset(project=project, name=DATASET, by=by, test_tasks=tasks, claimed=True)
    return build_dataset_version(dataset_version)


def trained(dataset_version: DatasetVersion) -> RewardModel | None:
    """The newest model of this dataset version that a demo trained."""
    runs = TrainingRun.objects.filter(_DEMO_RUNS, dataset_version=dataset_version)
    models = RewardModel.objects.filter(deleted_at=None, training_run__in=runs)
    return models.order_by("-version").first()


def train(
    dataset_version: DatasetVersion,
    by: User,
    *,
    check: Callable[[], None],
    tell: Callable[[TrainingRun], None],
) -> RewardModel:
    """Have the workers that run train on this dataset version; a run that waits or goes on already is followed.

    check: raises when a process died. tell: called about once a second while the run goes on.
    """
    open_ = TrainingRun.objects.filter(
        _DEMO_RUNS, dataset_version=dataset_version, state__in=(JobState.QUEUED, JobState.RUNNING)
    )
    run = open_.first() or start_run(
        project=dataset_version.project, dataset_version=dataset_version, recipe=RECIPE, by=by, name=DATASET
    )
    follow_run(run, check=check, tell=tell)
    if run.state != JobState.SUCCEEDED:
        raise DomainError(f"The training run {run.pk} {run.state}: {run.error}")
    return run.model


def follow_run(run: TrainingRun, *, check: Callable[[], None], tell: Callable[[TrainingRun], None]) -> None:
    """Until it has ended. Raises DomainError where it takes longer than TRAINING_SECONDS."""
    deadline = time.monotonic() + TRAINING_SECONDS
    while not run.is_finished:
        if time.monotonic() > deadline:
            raise DomainError(
                f"{run} is still {run.state} after {TRAINING_SECONDS:.0f} seconds; see the gpu worker's log."
            )
        time.sleep(1.0)
        check()
        run.refresh_from_db()
        tell(run)


def put_on_endpoint(model: RewardModel, by: User) -> EndpointRevision:
    """The revision that serves this model; a new one unless it does already."""
    endpoint = (
        Endpoint.objects.filter(project=model.project, name=ENDPOINT)
        .select_related("active__endpoint")
        .first()
    )
    served = endpoint.active if endpoint is not None else None
    if served is not None and served.reward_models.filter(pk=model.pk).exists():
        return served
    reason = "Part of the demo: a model of the sample project, to show what an endpoint answers."
    return deploy(model=model, endpoint_name=ENDPOINT, project=model.project, by=by, reason=reason)


def held_out_preferences(dataset_version: DatasetVersion) -> list[PreferenceRecord]:
    return [
        record
        for record in read_dataset_records(dataset_version, "test")
        if isinstance(record, PreferenceRecord)
    ]


def hidden_accuracy(preferences: list[PreferenceRecord]) -> float:
    """How often the hidden reward itself prefers what the annotators preferred; equal rewards count a half."""
    decided = [record for record in preferences if record.choice in ("a", "b")]
    if not decided:
        raise DomainError("The held-out tasks have no decided comparison; freeze the sample again.")
    return math.fsum(_agrees(record) for record in decided) / len(decided)


def _agrees(record: PreferenceRecord) -> float:
    a, b = (hidden_reward(to_messages(trajectory), trajectory.task.id) for trajectory in (record.a, record.b))
    return 0.5 if a == b else float((a > b) == (record.choice == "a"))


def accuracies(model: RewardModel, preferences: list[PreferenceRecord]) -> dict[str, Any]:
    """The report's held-out accuracy next to what the hidden reward, an annotator and trivial rules reach."""
    report = (model.training_run.report if model.training_run else None) or {}
    said = report.get("preference")
    if not said:
        raise DomainError(f"The report of {model} has no held-out accuracy; see its run page.")
    kept = {name: said[name] for name in ("interval", "n", "baselines", "verdict")}
    annotators = report.get("annotators")
    return kept | {
        "model": said["accuracy"],
        "hidden": hidden_accuracy(preferences),
        "annotators": annotators,
    }
