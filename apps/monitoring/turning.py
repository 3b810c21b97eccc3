"""Once around the circle, step by step: asked, frozen, trained, compared, tried, promoted. Or stopped, with the reason.

Nothing here takes long: what does is a job of its own, and a turn looks whether it has ended.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.annotation.models import Campaign
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Job, JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.services import freeze_dataset
from apps.monitoring.asking import ask_unsure
from apps.monitoring.models import Comparing, FollowUp, Monitor, Turn
from apps.monitoring.online import learn_from_verifier, verified_since
from apps.rewards import services as rewards
from apps.rewards.models import Endpoint, Release
from apps.rewards.selectors import open_release, spec_of
from apps.training.models import RewardModel
from apps.training.pretrained import with_names
from apps.training.services import start_run
from workers.errors import RewardError
from workers.schema.endpoints import RewardModelPart

logger = logging.getLogger(__name__)

COMPARE = "apps.monitoring.tasks.advance_comparings"
WORSE = 0.05  # of accuracy, by which the new model may be worse on what the old one was measured on, for sure
Stage = Turn.Stage


@transaction.atomic
def begin_turn(
    *,
    endpoint: Endpoint,
    by: User | None,
    asks: int = 0,
    campaign: Campaign | None = None,
    follow_up: FollowUp | None = None,
    verified: bool = False,
    heads_only: bool = True,
    tries: bool = True,
    automatic: bool = False,
) -> Turn:
    """asks: comparisons about what the endpoint is unsure of; 0 goes on from what was judged. follow_up: people were
    asked already. verified: comparisons are made of what the endpoint's verifier said, too. Raises DomainError where
    nothing is served that could be bettered, or a turn is on its way."""
    endpoint = Endpoint.objects.select_for_update(of=("self",)).select_related("project").get(pk=endpoint.pk)
    against = served_model(endpoint)
    if endpoint.turns.filter(ended_at=None).exists():
        raise Conflict(f"A turn of {endpoint.name} is on its way; stop it first.")
    if asks and follow_up is None:
        if by is None:
            raise DomainError("A person asks people.", pointer="/asks")
        follow_up = ask_unsure(endpoint=endpoint, campaign=campaign, count=asks, by=by)
    if verified:
        Monitor.objects.get_or_create(endpoint=endpoint)
        learn_from_verifier(endpoint=endpoint, by=by)
    stage = Stage.ASKING if follow_up is not None else Stage.FREEZING
    turn = Turn.objects.create(
        endpoint=endpoint,
        against=against,
        stage=stage,
        asks=asks,
        follow_up=follow_up,
        heads_only=heads_only,
        tries=tries,
        automatic=automatic,
        started_by=by,
        entered={stage: timezone.now().isoformat()},
    )
    said = {"asks": asks, "heads_only": heads_only, "automatic": automatic}
    record_audit(project=endpoint.project, actor=by, verb="turn.begun", target=endpoint.name, data=said)
    return turn


@transaction.atomic
def go_on(*, turn: Turn, by: User) -> Turn:
    """Take the next step: what waits for a person, or what people have not judged to the end."""
    turn = _locked(turn)
    if not (turn.is_ready or turn.stage == Stage.ASKING):
        raise Conflict(f"{turn.get_stage_display()}: there is nothing to confirm yet.")
    record_audit(
        project=turn.endpoint.project,
        actor=by,
        verb="turn.confirmed",
        target=turn.endpoint.name,
        data={"stage": turn.stage},
    )
    _next(turn)
    return turn


@transaction.atomic
def stop_turn(*, turn: Turn, by: User | None, reason: str) -> Turn:
    """What it has started goes on by itself; nothing more follows from it. Its release is rolled back."""
    turn = _locked(turn)
    if turn.trial is not None and turn.trial.is_open:
        rewards.roll_back_release(release=turn.trial, by=by, reason=reason)
    _end(turn, Stage.STOPPED, reason)
    return turn


def learn_online() -> None:
    """Begin a turn for every endpoint that learns from its verifier by itself, once there is enough to learn from."""
    for monitor in Monitor.objects.filter(online_every__gt=0).select_related("endpoint__project"):
        if monitor.endpoint.turns.filter(ended_at=None).exists():
            continue
        if verified_since(monitor) >= monitor.online_every:
            try:
                begin_turn(endpoint=monitor.endpoint, by=None, verified=True, automatic=True)
            except DomainError:  # nothing new after all: it waits for as many more
                newest = monitor.endpoint.samples.aggregate(newest=Max("pk"))["newest"]
                Monitor.objects.filter(pk=monitor.pk).update(learnt_to=newest)


def advance_turns() -> None:
    """Look at every turn that is on its way, and take what steps can be taken."""
    for turn in Turn.objects.filter(ended_at=None, is_ready=False):
        try:
            advance(turn)
        except (DomainError, RewardError) as error:
            _stop(turn, error.message)
        except Exception:  # one that cannot go on is no reason for the others to wait
            logger.exception("%s cannot go on", turn)


@transaction.atomic
def advance(turn: Turn) -> Turn:
    """Raises DomainError where it cannot go on."""
    turn = _locked(turn)
    if turn.is_open and not turn.is_ready and _STEPS[turn.stage](turn):
        if turn.automatic or turn.stage == Stage.TRYING:
            _next(turn)
        else:
            turn.is_ready = True
            turn.save(update_fields=["is_ready"])
    return turn


def served_model(endpoint: Endpoint) -> RewardModel:
    """The one whose reward counts most. Raises DomainError."""
    if endpoint.active is None:
        raise DomainError(f"Nothing is deployed on {endpoint.name}; train and deploy a model first.")
    parts = [one for one in spec_of(endpoint.active).components if isinstance(one, RewardModelPart)]
    if not parts:
        raise DomainError(f"No reward model is behind {endpoint.name}, so there is nothing to train.")
    name = max(parts, key=lambda one: abs(one.weight)).model
    return next(one for one in endpoint.active.reward_models.all() if str(one) == name)


def is_better(compared: Sequence[dict[str, Any]], *, newest: DatasetVersion) -> tuple[bool, str]:
    """On the newest test split it must not be worse; on those before it may be worse by WORSE, but not for sure more.
    And why. compared: see `Comparing.result`."""
    names = DatasetVersion.objects.in_bulk([one["snapshot"] for one in compared])
    for one in sorted(compared, key=lambda each: each["snapshot"] == newest.pk):
        difference, interval = one["difference"], one["interval"]
        where = f"on the test split of {names[one['snapshot']]} (n {one['n']})"
        if difference is None:
            if one["snapshot"] == newest.pk:
                return False, f"There is nothing to compare it by {where}."
            continue
        shown = f"Its accuracy differs by {100 * difference:+.1f} points {where}"
        if one["snapshot"] == newest.pk:
            return difference >= 0, f"{shown}."
        if interval is not None and interval[1] < -WORSE:
            return False, f"{shown}: worse for sure than the {100 * WORSE:g} that are allowed."
    return False, "It was not compared."


def _asked(turn: Turn) -> bool:
    return turn.follow_up is None or turn.follow_up.judged >= len(turn.follow_up.items)


def _frozen(turn: Turn) -> bool:
    if turn.dataset_version is None:
        old = turn.against.training_run.dataset_version if turn.against.training_run else None
        filters = dict(old.filters) if old else {}
        split = filters.pop("split", {})
        turn.dataset_version = freeze_dataset(
            project=turn.endpoint.project,
            name=old.name if old else turn.endpoint.name,
            by=turn.started_by,
            filters=filters,
            **{name: value for name, value in split.items() if value is not None},
        )
        turn.save(update_fields=["dataset_version"])
    return _ended(turn.dataset_version, "The dataset version")


def _trained(turn: Turn) -> bool:
    assert turn.dataset_version is not None
    if turn.run is None:
        own = with_names(turn.against.training_run.recipe) if turn.against.training_run else {}
        turn.run = start_run(
            project=turn.endpoint.project,
            dataset_version=turn.dataset_version,
            recipe=own | {"heads_only": turn.heads_only},
            by=turn.started_by,
            name=turn.against.name,
            parent=turn.against if turn.heads_only else None,
        )
        turn.save(update_fields=["run"])
    return _ended(turn.run, "The training")


def _compared(turn: Turn) -> bool:
    assert turn.dataset_version is not None
    comparing = Comparing.objects.filter(turn=turn).first()
    if comparing is None:
        old = turn.against.training_run.dataset_version if turn.against.training_run else None
        comparing = Comparing.objects.create(turn=turn)
        comparing.dataset_versions.set(
            [turn.dataset_version, *([old] if old and old.splits.get("test") else [])]
        )
        job_queue.nudge_on_commit(COMPARE)
        return False
    if not _ended(comparing, "The comparison"):
        return False
    better, turn.reason = is_better(comparing.result, newest=turn.dataset_version)
    turn.save(update_fields=["reason"])
    if not better:
        raise DomainError(turn.reason)
    return True


def _tried(turn: Turn) -> bool:
    assert turn.run is not None
    if turn.trial is None:
        release_options = rewards.ReleaseOptions(automatic=True) if turn.tries else None
        _deploy(turn, release_options)
        if not turn.tries:
            return True
        turn.trial = open_release(turn.endpoint)
        turn.save(update_fields=["trial"])
    trial = Release.objects.get(pk=turn.trial.pk) if turn.trial else None
    if trial is None or trial.is_open:
        return False
    if trial.stage != Release.Stage.PROMOTED:
        raise DomainError(f"Its release was rolled back: {trial.reason}")
    turn.reason = f"{turn.reason} {trial.reason}".strip()
    turn.save(update_fields=["reason"])
    return True


def _deploy(turn: Turn, release_options: rewards.ReleaseOptions | None) -> None:
    """What is active, with the new model in the old one's place."""
    endpoint = turn.endpoint
    assert endpoint.active is not None and turn.run is not None
    spec = spec_of(endpoint.active)
    if str(turn.against) not in spec.models:
        raise DomainError(
            f"{endpoint.name} no longer serves {turn.against}, which the new model was to replace."
        )
    names = {name: name for name in spec.models} | {str(turn.against): str(turn.run.model)}
    rewards.put_spec(
        project=endpoint.project,
        endpoint_name=endpoint.name,
        spec=spec.with_models(names).to_builtins(),
        by=turn.started_by,
        release_options=release_options,
    )


_STEPS: dict[str, Callable[[Turn], bool]] = {
    Stage.ASKING: _asked,
    Stage.FREEZING: _frozen,
    Stage.TRAINING: _trained,
    Stage.COMPARING: _compared,
    Stage.TRYING: _tried,
}
_ORDER = [*_STEPS, Stage.DONE]


def _ended(job: Job, what: str) -> bool:
    """Raises DomainError where it failed."""
    job.refresh_from_db()
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        raise DomainError(
            f"{what} {'was cancelled' if job.state == JobState.CANCELLED else 'failed'}: {job.error}"
        )
    return job.state == JobState.SUCCEEDED


def _next(turn: Turn) -> None:
    following = _ORDER[_ORDER.index(Stage(turn.stage)) + 1]
    if following == Stage.DONE:
        _end(turn, Stage.DONE, turn.reason)
        return
    turn.stage, turn.is_ready = following, False
    turn.entered |= {following: timezone.now().isoformat()}
    turn.save(update_fields=["stage", "is_ready", "entered"])


@transaction.atomic
def _stop(turn: Turn, reason: str) -> None:
    locked = _locked(turn)
    if locked.is_open:
        _end(locked, Stage.STOPPED, reason)


def _end(turn: Turn, stage: str, reason: str) -> None:
    now = timezone.now()
    turn.stage, turn.reason, turn.ended_at, turn.is_ready = stage, reason, now, False
    turn.entered |= {stage: now.isoformat()}
    turn.save(update_fields=["stage", "reason", "ended_at", "is_ready", "entered"])
    endpoint = turn.endpoint
    record_audit(
        project=endpoint.project,
        actor=None,
        verb=f"turn.{stage}",
        target=endpoint.name,
        data={"reason": reason},
    )


def _locked(turn: Turn) -> Turn:
    """Raises Conflict for one that has ended."""
    rows = Turn.objects.select_for_update(of=("self",)).select_related(
        "endpoint__project", "endpoint__active", "against__training_run__dataset_version", "against__project"
    )
    found = rows.get(pk=turn.pk)
    if not found.is_open:
        raise Conflict(f"The turn has ended: {found.get_stage_display()}.")
    return found
