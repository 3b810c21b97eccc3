"""A retraining cycle, stage by stage: annotate, freeze, train, compare, release. Or stopped, with the reason.

Nothing here takes long: what does is a job, and a cycle checks whether its job has ended.
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.actors import Actor, require_person
from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.annotation.models import Campaign
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.jobs.job_queue import Job, JobState
from apps.datasets.models import DatasetVersion
from apps.datasets.services import freeze_dataset
from apps.monitoring.models import Monitor
from apps.retraining.follow_up import follow_up_uncertain
from apps.retraining.models import FollowUp, ModelComparison, RetrainingCycle
from apps.retraining.online import count_new_verified, import_verified_comparisons
from apps.retraining.training_recipe import retraining_recipe
from apps.rewards import services as rewards
from apps.rewards.models import Endpoint, Release
from apps.rewards.selectors import open_release, spec_of
from apps.training.models import RewardModel
from apps.training.report_measures import MIN_TASKS
from apps.training.services import start_run
from workers.errors import RewardError
from workers.schema.components import RewardModelPart
from workers.schema.parents import can_train_heads, is_prior_mean

logger = logging.getLogger(__name__)

ADVANCE_COMPARISONS = "apps.retraining.tasks.advance_comparisons"
# Of accuracy, by which the new model may be worse on the previous model's test split, with certainty.
ALLOWED_ACCURACY_DROP = 0.05
# On the newest test split: the interval of the difference has to be above minus this.
EXCLUDED_ACCURACY_LOSS = 0.02
# Of its release. A model that is retrained as the served one went wrong may have to disagree with it more than other
# candidates do; held-out comparisons have shown before that it is no worse.
RELEASE_RULES = {"agreement": 0.0}
Stage = RetrainingCycle.Stage
ComparisonState = Literal["passes", "unclear", "fails"]


@transaction.atomic
def start_cycle(
    *,
    endpoint: Endpoint,
    by: User | None,
    comparisons: int = 0,
    campaign: Campaign | None = None,
    follow_up: FollowUp | None = None,
    verified: bool = False,
    heads_only: bool = True,
    staged_release: bool = True,
    automatic: bool = False,
) -> RetrainingCycle:
    """comparisons: asked of annotators, about what the endpoint is uncertain of; 0 uses the annotations that exist.
    follow_up: annotators were asked already. verified: the endpoint's verifier adds comparisons. heads_only: of a model
    that can be a parent; others are trained whole. Raises DomainError where no reward model is served, or a cycle is
    in progress."""
    endpoint = Endpoint.objects.select_for_update(of=("self",)).select_related("project").get(pk=endpoint.pk)
    previous_model = served_model(endpoint)
    heads_only = heads_only and can_train_heads(previous_model.manifest)
    if endpoint.retraining_cycles.filter(ended_at=None).exists():
        raise Conflict(f"A retraining cycle of {endpoint.name} is in progress; stop it first.")
    if comparisons and follow_up is None:
        if by is None:
            raise DomainError("A user is required to request annotations.", pointer="/comparisons")
        follow_up = follow_up_uncertain(endpoint=endpoint, campaign=campaign, count=comparisons, by=by)
    if verified:
        Monitor.objects.get_or_create(endpoint=endpoint)
        import_verified_comparisons(endpoint=endpoint, by=by)
    stage = Stage.ASKING if follow_up is not None else Stage.FREEZING
    cycle = RetrainingCycle.objects.create(
        endpoint=endpoint,
        previous_model=previous_model,
        stage=stage,
        requested_comparisons=comparisons,
        follow_up=follow_up,
        heads_only=heads_only,
        staged_release=staged_release,
        automatic=automatic,
        started_by=by,
        stage_times={stage: timezone.now().isoformat()},
    )
    record_audit(
        project=endpoint.project,
        actor=by,
        verb="retraining.started",
        target=endpoint.name,
        data={"comparisons": comparisons, "heads_only": heads_only, "automatic": automatic},
    )
    return cycle


@transaction.atomic
def confirm_stage(*, cycle: RetrainingCycle, by: Actor) -> RetrainingCycle:
    """Enter the next stage: after one that awaits confirmation, or without the annotations that are still missing.
    Raises Forbidden where no person confirms it."""
    require_person(by, "confirm a stage of retraining")
    cycle = _lock_cycle(cycle)
    if not (cycle.awaits_confirmation or cycle.stage == Stage.ASKING):
        raise Conflict(f"{cycle.get_stage_display()}: there is nothing to confirm yet.")
    record_audit(
        project=cycle.endpoint.project,
        actor=by,
        verb="retraining.confirmed",
        target=cycle.endpoint.name,
        data={"stage": cycle.stage},
    )
    _enter_next_stage(cycle)
    return cycle


@transaction.atomic
def stop_cycle(*, cycle: RetrainingCycle, by: Actor, reason: str) -> RetrainingCycle:
    """Jobs that it has started continue, without consequences. Its release is withdrawn."""
    cycle = _lock_cycle(cycle)
    if cycle.release is not None and cycle.release.is_open:
        rewards.roll_back_release(release=cycle.release, by=by, reason=reason)
    _end_cycle(cycle, Stage.STOPPED, reason)
    return cycle


def start_online_cycles() -> None:
    """Start a cycle for every endpoint that learns from its verifier automatically and has enough new samples."""
    monitors = Monitor.objects.filter(retrain_after__gt=0, endpoint__project__archived_at=None)
    for monitor in monitors.select_related("endpoint__project"):
        if monitor.endpoint.retraining_cycles.filter(ended_at=None).exists():
            continue
        if count_new_verified(monitor) >= monitor.retrain_after:
            try:
                start_cycle(endpoint=monitor.endpoint, by=None, verified=True, automatic=True)
            except DomainError:  # nothing new after all: it waits for as many samples again
                newest = monitor.endpoint.samples.aggregate(newest=Max("pk"))["newest"]
                Monitor.objects.filter(pk=monitor.pk).update(last_learned_sample=newest)


def advance_cycles() -> None:
    """Check every cycle in progress, and enter the next stage where the current one is complete."""
    rows = RetrainingCycle.objects.filter(ended_at=None, endpoint__project__archived_at=None)
    for cycle in rows.filter(awaits_confirmation=False):
        try:
            advance_cycle(cycle)
        except (DomainError, RewardError) as error:
            _stop_with_reason(cycle, error.message)
        except Exception:  # the other cycles continue where one cannot
            logger.exception("%s cannot advance", cycle)


@transaction.atomic
def advance_cycle(cycle: RetrainingCycle) -> RetrainingCycle:
    """Raises DomainError where it cannot continue."""
    cycle = _lock_cycle(cycle)
    if cycle.is_open and not cycle.awaits_confirmation and _STAGE_CHECKS[cycle.stage](cycle):
        if cycle.automatic or cycle.stage == Stage.TRYING:
            _enter_next_stage(cycle)
        else:
            cycle.awaits_confirmation = True
            cycle.save(update_fields=["awaits_confirmation"])
    return cycle


def served_model(endpoint: Endpoint) -> RewardModel:
    """The one whose reward has the largest weight. Raises DomainError."""
    if endpoint.active is None:
        raise DomainError(f"Nothing is deployed on {endpoint.name}; train and deploy a model first.")
    parts = [part for part in spec_of(endpoint.active).components if isinstance(part, RewardModelPart)]
    if not parts:
        raise DomainError(f"No reward model is behind {endpoint.name}, so there is nothing to train.")
    name = max(parts, key=lambda part: abs(part.weight)).model
    return next(model for model in endpoint.active.reward_models.all() if str(model) == name)


def judge_comparisons(
    comparisons: Sequence[dict[str, Any]], *, newest: DatasetVersion
) -> tuple[ComparisonState, str]:
    """On the newest test split the new model must be shown not to lose EXCLUDED_ACCURACY_LOSS (non-inferiority
    by the 95 % interval); on the earlier ones it must not be shown to lose ALLOWED_ACCURACY_DROP. And why.
    unclear: neither this nor any loss is shown. comparisons: see `ModelComparison.result`."""
    names = DatasetVersion.objects.in_bulk([comparison["snapshot"] for comparison in comparisons])
    for comparison in sorted(comparisons, key=lambda each: each["snapshot"] == newest.pk):
        difference, interval = comparison["difference"], comparison["interval"]
        is_newest = comparison["snapshot"] == newest.pk
        split = f"on the test split of {names[comparison['snapshot']]} (n {comparison['n']})"
        if difference is None:
            if is_newest:
                return "fails", f"The models cannot be compared {split}."
            continue
        change = f"Its accuracy differs by {100 * difference:+.1f} points {split}"
        if is_newest:
            return _excludes_loss(comparison, change)
        if interval[1] < -ALLOWED_ACCURACY_DROP:
            allowed = f"{100 * ALLOWED_ACCURACY_DROP:g}"
            return "fails", f"{change}: certainly worse than the {allowed} points that are allowed."
    return "fails", "The models were not compared."


def _excludes_loss(comparison: dict[str, Any], change: str) -> tuple[ComparisonState, str]:
    low, high = comparison["interval"]
    lost = f"{100 * EXCLUDED_ACCURACY_LOSS:g} points"
    change = f"{change}, 95 % interval [{100 * low:+.1f}, {100 * high:+.1f}]"
    advice = "Annotate more held-out tasks, or decide whether to release it anyway."
    tasks = comparison.get("tasks", MIN_TASKS)  # missing in comparisons of earlier versions
    if tasks < MIN_TASKS:
        few = f"too few tasks for a conclusion ({tasks}; at least {MIN_TASKS} are needed)"
        return "unclear", f"{change}: {few}. {advice}"
    if low > -EXCLUDED_ACCURACY_LOSS:
        return "passes", f"{change}."
    change = f"{change}: a loss of {lost} is not excluded."
    if high < 0:
        return "fails", f"{change} It is shown to be worse."
    return "unclear", f"{change} {_needed_comparisons(comparison)} {advice}"


def _needed_comparisons(comparison: dict[str, Any]) -> str:
    """The width of an interval falls with the root of their number."""
    low, high = comparison["interval"]
    distance = comparison["difference"] + EXCLUDED_ACCURACY_LOSS
    if distance <= 0:
        return "With this difference no number of comparisons would exclude it."
    needed = comparison["n"] * ((high - low) / 2 / distance) ** 2
    rounding = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    rounded = math.ceil(needed / rounding) * rounding
    return f"With this difference about {rounded:,} held-out comparisons would be needed."


def _annotation_is_complete(cycle: RetrainingCycle) -> bool:
    return cycle.follow_up is None or cycle.follow_up.completed_count >= len(cycle.follow_up.items)


def _dataset_is_frozen(cycle: RetrainingCycle) -> bool:
    if cycle.dataset_version is None:
        previous = _previous_dataset_version(cycle)
        filters = dict(previous.filters) if previous else {}
        split = filters.pop("split", {})
        cycle.dataset_version = freeze_dataset(
            project=cycle.endpoint.project,
            name=previous.name if previous else cycle.endpoint.name,
            by=cycle.started_by,
            filters=filters,
            **{name: value for name, value in split.items() if value is not None},
        )
        cycle.save(update_fields=["dataset_version"])
    return _job_succeeded(cycle.dataset_version, "The dataset version")


def _model_is_trained(cycle: RetrainingCycle) -> bool:
    assert cycle.dataset_version is not None
    if cycle.training_run is None:
        model = cycle.previous_model
        # Checked here too: cycles of earlier versions did not when they started.
        heads_only = cycle.heads_only and can_train_heads(model.manifest)
        has_parent = heads_only or is_prior_mean(model.manifest)
        cycle.training_run = start_run(
            project=cycle.endpoint.project,
            dataset_version=cycle.dataset_version,
            recipe=retraining_recipe(model, cycle.dataset_version, heads_only=heads_only),
            by=cycle.started_by,
            name=model.name,
            parent=model if has_parent else None,
        )
        cycle.save(update_fields=["training_run"])
    return _job_succeeded(cycle.training_run, "The training run")


def _comparison_is_passed(cycle: RetrainingCycle) -> bool:
    assert cycle.dataset_version is not None
    comparison = ModelComparison.objects.filter(cycle=cycle).first()
    if comparison is None:
        previous = _previous_dataset_version(cycle)
        comparison = ModelComparison.objects.create(cycle=cycle)
        others = [previous] if previous and not previous.withdrawn_at and previous.splits.get("test") else []
        comparison.dataset_versions.set([cycle.dataset_version, *others])
        job_queue.nudge_on_commit(ADVANCE_COMPARISONS)
        return False
    if not _job_succeeded(comparison, "The model comparison"):
        return False
    state, cycle.reason = judge_comparisons(comparison.result, newest=cycle.dataset_version)
    # A cycle that no person started would wait in vain, and keep the next one from starting.
    cycle.awaits_confirmation = state == "unclear" and cycle.started_by is not None
    cycle.save(update_fields=["reason", "awaits_confirmation"])
    if state != "passes" and not cycle.awaits_confirmation:
        raise DomainError(cycle.reason)
    return state == "passes"


def _release_is_promoted(cycle: RetrainingCycle) -> bool:
    assert cycle.training_run is not None
    if cycle.release is None:
        _deploy_new_model(cycle, _release_options() if cycle.staged_release else None)
        if not cycle.staged_release:
            return True
        cycle.release = open_release(cycle.endpoint)
        cycle.save(update_fields=["release"])
    release = Release.objects.get(pk=cycle.release.pk) if cycle.release else None
    if release is None or release.is_open:
        return False
    if release.stage != Release.Stage.PROMOTED:
        raise DomainError(f"Its release was rolled back: {release.reason}")
    cycle.reason = f"{cycle.reason} {release.reason}".strip()
    cycle.save(update_fields=["reason"])
    return True


def _release_options() -> rewards.ReleaseOptions:
    return rewards.ReleaseOptions(rules=RELEASE_RULES, automatic=True)


def _deploy_new_model(cycle: RetrainingCycle, release_options: rewards.ReleaseOptions | None) -> None:
    """The active revision, with the new model in place of the previous one."""
    endpoint = cycle.endpoint
    assert endpoint.active is not None and cycle.training_run is not None
    spec = spec_of(endpoint.active)
    previous = str(cycle.previous_model)
    if previous not in spec.models:
        raise DomainError(f"{endpoint.name} no longer serves {previous}, which the new model was to replace.")
    names = {name: name for name in spec.models} | {previous: str(cycle.training_run.model)}
    rewards.put_spec(
        project=endpoint.project,
        endpoint_name=endpoint.name,
        spec=spec.with_models(names).to_builtins(),
        by=cycle.started_by,
        release_options=release_options,
    )


_STAGE_CHECKS: dict[str, Callable[[RetrainingCycle], bool]] = {
    Stage.ASKING: _annotation_is_complete,
    Stage.FREEZING: _dataset_is_frozen,
    Stage.TRAINING: _model_is_trained,
    Stage.COMPARING: _comparison_is_passed,
    Stage.TRYING: _release_is_promoted,
}
_STAGE_ORDER = [*_STAGE_CHECKS, Stage.DONE]


def _previous_dataset_version(cycle: RetrainingCycle) -> DatasetVersion | None:
    run = cycle.previous_model.training_run
    return run.dataset_version if run else None


def _job_succeeded(job: Job, label: str) -> bool:
    """Raises DomainError where it failed."""
    job.refresh_from_db()
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        raise DomainError(
            f"{label} {'was cancelled' if job.state == JobState.CANCELLED else 'failed'}: {job.error}"
        )
    return job.state == JobState.SUCCEEDED


def _enter_next_stage(cycle: RetrainingCycle) -> None:
    following = _STAGE_ORDER[_STAGE_ORDER.index(Stage(cycle.stage)) + 1]
    if following == Stage.DONE:
        _end_cycle(cycle, Stage.DONE, cycle.reason)
        return
    cycle.stage, cycle.awaits_confirmation = following, False
    cycle.stage_times |= {following: timezone.now().isoformat()}
    cycle.save(update_fields=["stage", "awaits_confirmation", "stage_times"])


@transaction.atomic
def _stop_with_reason(cycle: RetrainingCycle, reason: str) -> None:
    locked = _lock_cycle(cycle)
    if locked.is_open:
        _end_cycle(locked, Stage.STOPPED, reason)


def _end_cycle(cycle: RetrainingCycle, stage: str, reason: str) -> None:
    now = timezone.now()
    cycle.stage, cycle.reason, cycle.ended_at, cycle.awaits_confirmation = stage, reason, now, False
    cycle.stage_times |= {stage: now.isoformat()}
    cycle.save(update_fields=["stage", "reason", "ended_at", "awaits_confirmation", "stage_times"])
    endpoint = cycle.endpoint
    record_audit(
        project=endpoint.project,
        actor=None,
        verb=f"retraining.{stage}",
        target=endpoint.name,
        data={"reason": reason},
    )


def _lock_cycle(cycle: RetrainingCycle) -> RetrainingCycle:
    """Raises Conflict for one that has ended."""
    rows = RetrainingCycle.objects.select_for_update(of=("self",)).select_related(
        "endpoint__project",
        "endpoint__active",
        "previous_model__training_run__dataset_version",
        "previous_model__project",
    )
    locked = rows.get(pk=cycle.pk)
    if not locked.is_open:
        raise Conflict(f"The retraining cycle has ended: {locked.get_stage_display()}.")
    return locked
