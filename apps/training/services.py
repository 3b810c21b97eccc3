"""The writes of recipes, training runs and models."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import PROTECT, Max, Q
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.storage.artifacts import delete_tree
from apps.core.version_names import check_slug
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import require_frozen
from apps.machines.launcher import NAME as MACHINE
from apps.machines.launcher import require_machine
from apps.training import recipes
from apps.training.launching.launchers import launcher_named
from apps.training.launching.options import check_launch_options
from apps.training.model_export_jobs import remove_model_exports
from apps.training.models import (
    LOCAL,
    Evaluation,
    HeldOutDecisions,
    Recipe,
    RewardModel,
    TrainingRun,
    TrainingRunEvent,
)
from apps.training.selectors import run_folder
from apps.training.tracker_options import check_tracker_options
from apps.webhooks.models import WebhookEvent
from apps.webhooks.services import announce
from workers.errors import RewardError
from workers.schema.builtin_recipes import AUTO
from workers.schema.parents import require_backbone_parent, require_parent
from workers.schema.recipe import Recipe as RecipeValue

ADVANCE = "apps.training.tasks.advance_runs"
FOLLOW = "apps.training.tasks.follow_runs"  # of runs on a cluster
By = User | ApiKey | None  # None is the command line
MAX_SEED = 2**63 - 1
MAX_TAGS = 20


@transaction.atomic
def start_run(
    *,
    project: Project,
    dataset_version: DatasetVersion,
    by: By,
    recipe: RecipeValue | str | Mapping[str, Any] | None = None,
    name: str = "",
    seed: int = 0,
    parent: RewardModel | None = None,
    track: Sequence[str] = (),
    track_project: str = "",
    track_weights: bool = False,
    on: str = LOCAL,
    hosts: int | None = None,
    gpus: int | None = None,
) -> TrainingRun:
    """Put a training run in the queue.

    recipe: values, TOML, or a recipe's name; by default that of the parent, else `auto`. name: of the model; by default
    the dataset's. parent: a model of the project, whose weights training starts with. track, track_project,
    track_weights: see TrackerOptions. on: a launcher; hosts, gpus: of the run there, gpus on each host.
    """
    if dataset_version.project_id != project.pk:
        raise DomainError(
            f"{dataset_version} is not in the project {project}; choose one of its datasets.",
            pointer="/dataset",
        )
    require_frozen(dataset_version)
    if not 0 <= seed <= MAX_SEED:
        raise DomainError(f"seed must be between 0 and {MAX_SEED}, not {seed}.", pointer="/seed")
    tracker_options = check_tracker_options(track, project=track_project, weights=track_weights)
    if recipe is None:
        recipe = AUTO if parent is None else recipes.fine_tuning_recipe(parent)
    chosen = recipes.for_dataset(recipes.choose(project, recipe), dataset_version)
    _require_enough(dataset_version, chosen.values["objective"])
    _require_parent(parent, project, chosen.recipe)
    launcher_named(on)
    launch_options = check_launch_options(on, chosen.values, hosts=hosts, gpus=gpus)
    if on == MACHINE:
        require_machine(project, launch_options.resources(chosen.values).gpus)
    run = TrainingRun.objects.create(
        project=project,
        dataset_version=dataset_version,
        recipe_name=chosen.name,
        recipe=chosen.values,
        seed=seed,
        parent=parent,
        model_name=check_slug(name or dataset_version.name, what="model"),
        started_by=_user(by),
        tracker_options=tracker_options.values(),
        launcher=on,
        launch_options=launch_options.values(),
    )
    record_audit(
        project=project,
        actor=by,
        verb="run.started",
        target=str(run),
        data={"dataset_version": str(dataset_version), "on": on},
    )
    _nudge(run)
    return run


def _nudge(run: TrainingRun) -> None:
    job_queue.nudge_on_commit(ADVANCE if run.launcher == LOCAL else FOLLOW)


@transaction.atomic
def save_recipe(*, project: Project, name: str, toml: str, by: By) -> Recipe:
    """Keep a checked recipe under a name; one of that name is replaced (runs hold a copy of what they used)."""
    recipes.check_new_name(name, pointer="/save_as")
    recipes.choose(project, recipes.check(toml))
    recipe, _ = Recipe.objects.update_or_create(
        project=project, name=name, defaults={"toml": toml, "created_by": _user(by)}
    )
    record_audit(project=project, actor=by, verb="recipe.saved", target=name)
    return recipe


@transaction.atomic
def cancel_run(*, run: TrainingRun, by: By) -> TrainingRun:
    """A queued run ends here; a running one writes a checkpoint and stops within seconds."""
    if run.is_finished:
        raise Conflict(f"Run {run.pk} is already {run.state}.")
    job_queue.request_cancel(run)
    record_audit(project=run.project, actor=by, verb="run.cancelled", target=str(run))
    return run


@transaction.atomic
def rename_run(*, run: TrainingRun, name: str, by: By) -> TrainingRun:
    """An empty name removes it."""
    name = " ".join(name.split())
    longest = TrainingRun._meta.get_field("name").max_length
    if longest is not None and len(name) > longest:
        raise DomainError(f"The name has {len(name)} characters; the limit is {longest}.", pointer="/name")
    run.name = name
    run.save(update_fields=["name"])
    record_audit(project=run.project, actor=by, verb="run.renamed", target=str(run), data={"name": name})
    return run


@transaction.atomic
def resume_run(*, run: TrainingRun, by: By) -> TrainingRun:
    """Put a failed or cancelled run back in the queue; it continues from its newest checkpoint."""
    if run.state not in (job_queue.JobState.FAILED, job_queue.JobState.CANCELLED):
        raise Conflict(f"Run {run.pk} is {run.state}; only a failed or cancelled run can be resumed.")
    job_queue.requeue(run)
    record_audit(project=run.project, actor=by, verb="run.resumed", target=str(run))
    _nudge(run)
    return run


def announce_end(run: TrainingRun) -> None:
    """Announce the end of the run to the project's webhooks, within the transaction that ends it."""
    model = (
        RewardModel.objects.filter(training_run=run).select_related("project").order_by("-version").first()
    )
    payload = {
        "run": run.pk,
        "state": run.state,
        "dataset": str(run.dataset_version),
        "recipe": run.recipe_name,
        "model": None if model is None else str(model),
        "error": run.error or None,
    }
    path = reverse("training:run-detail", args=[run.project.slug, run.pk])
    announce(run.project, WebhookEvent.RUN_FINISHED, payload, path=path)


def record_events(*, run: TrainingRun, events: list[tuple[int, dict[str, Any]]]) -> None:
    """Store lines of the run's event file by their numbers; the same line twice is one row. Raises ClaimLost."""
    rows = [
        TrainingRunEvent(training_run=run, attempt=run.attempt, seq=seq, data=data) for seq, data in events
    ]
    with job_queue.fenced(run):
        TrainingRunEvent.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["training_run", "seq"],
            update_fields=["attempt", "data"],
        )


def record_tracker_states(*, run: TrainingRun, states: dict[str, Any]) -> None:
    """What became of the run at its trackers; unless another attempt holds it by now. The run may have ended."""
    TrainingRun.objects.filter(pk=run.pk, attempt=run.attempt).update(tracker_states=states)


def record_launched(*, run: TrainingRun, launched: dict[str, Any]) -> None:
    """What is known of the run's job on a cluster (LaunchedState). Raises ClaimLost."""
    with job_queue.fenced(run):
        TrainingRun.objects.filter(pk=run.pk).update(launched=launched)
    run.launched = launched


def close_launched(*, run: TrainingRun, launched: dict[str, Any]) -> None:
    """The job of a run that has ended is ended as well."""
    TrainingRun.objects.filter(pk=run.pk, launched=run.launched).update(launched=launched)


def forget_events(*, run: TrainingRun, beyond: int) -> None:
    """Drop rows of lines the event file does not have: those of an attempt on another machine. Raises ClaimLost."""
    with job_queue.fenced(run):
        TrainingRunEvent.objects.filter(training_run=run, seq__gt=beyond).delete()


def register_model(
    *,
    run: TrainingRun,
    artifact: str,
    manifest: dict[str, Any],
    report: dict[str, Any],
    decisions: list[Any] | None = None,
) -> RewardModel:
    """The end of a successful run: its model, with its report, as the next version. Raises ClaimLost."""
    with job_queue.fenced(run):
        model = _next_version(
            run.project, run.model_name, artifact=artifact, manifest=manifest, run=run, parent=run.parent
        )
        _store_evaluation(
            model=model,
            dataset_version=run.dataset_version,
            source=str(run.dataset_version),
            report=report,
            decisions=decisions,
        )
        job_queue.finish(run, job_queue.JobState.SUCCEEDED, report=report)
    return model


@transaction.atomic
def adopt_model(
    *, project: Project, name: str, artifact: str, manifest: dict[str, Any], by: By
) -> RewardModel:
    """Register a model that was trained elsewhere; its artifact is stored already."""
    model = _next_version(
        project, check_slug(name, what="model"), artifact=artifact, manifest=manifest, run=None
    )
    record_audit(project=project, actor=by, verb="model.imported", target=str(model))
    return model


def _store_evaluation(*, decisions: list[Any] | None, **fields: Any) -> Evaluation:
    """decisions: on each comparison, so that other models can be compared on the same ones."""
    evaluation = Evaluation.objects.create(**fields)
    if decisions:
        HeldOutDecisions.objects.create(evaluation=evaluation, rows=decisions)
    return evaluation


@transaction.atomic
def record_evaluation(
    *,
    model: RewardModel,
    dataset_version: DatasetVersion | None,
    source: str,
    report: dict[str, Any],
    by: By,
    decisions: list[Any] | None = None,
) -> Evaluation:
    evaluation = _store_evaluation(
        model=model,
        dataset_version=dataset_version,
        source=source[:255],
        report=report,
        decisions=decisions,
    )
    record_audit(
        project=model.project, actor=by, verb="model.evaluated", target=str(model), data={"on": source}
    )
    return evaluation


@transaction.atomic
def tag_model(*, model: RewardModel, tags: Sequence[str], by: By) -> RewardModel:
    """Replaces the tags of the model."""
    tags = sorted({tag.strip() for tag in tags if tag.strip()})
    for tag in tags:
        check_slug(tag, what="tag", pointer="/tags")
    if len(tags) > MAX_TAGS:
        raise DomainError(f"{len(tags)} tags; a model has at most {MAX_TAGS}. Remove some.", pointer="/tags")
    model.tags = tags
    model.save(update_fields=["tags"])
    record_audit(project=model.project, actor=by, verb="model.tagged", target=str(model), data={"tags": tags})
    return model


@transaction.atomic
def delete_model(*, model: RewardModel, by: By) -> None:
    """Deletes the artifact permanently, and the texts of its criteria; the row and its reports are kept. Refused while
    an endpoint could serve it, or a bulk job could go on with it."""
    locked = RewardModel.objects.select_for_update().select_related("project").get(pk=model.pk)
    if locked.deleted_at is not None:
        raise Conflict(f"{locked} has been deleted already.")
    if users := _used_by(locked):
        raise Conflict(
            f"{locked} cannot be deleted: {', '.join(users[:5])} {'uses' if len(users) == 1 else 'use'} it, or could "
            "go back to it. Deploy another model at endpoints, and cancel bulk jobs that have not ended, first."
        )
    locked.deleted_at = timezone.now()
    locked.manifest = {key: value for key, value in locked.manifest.items() if key != "criteria"}
    locked.save(update_fields=["deleted_at", "manifest"])
    record_audit(project=locked.project, actor=by, verb="model.deleted", target=str(locked))
    transaction.on_commit(lambda: _remove_files(locked))


def _remove_files(model: RewardModel) -> None:
    """The artifact, its exports, and the copy in the folder of the run."""
    delete_tree(model.artifact)
    remove_model_exports(model)
    if model.training_run is not None:
        shutil.rmtree(run_folder(model.training_run) / "model", ignore_errors=True)


def lock_usable(model: RewardModel) -> None:
    """Before the model is used: it cannot be deleted until this transaction ends. Raises Conflict."""
    locked = RewardModel.objects.select_for_update().select_related("project").get(pk=model.pk)
    if locked.deleted_at is not None:
        raise Conflict(f"{locked} has been deleted; use another model.")


def _used_by(model: RewardModel) -> list[str]:
    """Names of the rows of other apps that protect it: all, or those that pass `holds_model` of their class."""
    found: list[str] = []
    for relation in RewardModel._meta.related_objects:
        name = relation.get_accessor_name()
        if relation.on_delete is PROTECT and name is not None:
            holding = getattr(relation.related_model, "holds_model", Q())
            found += [str(row) for row in getattr(model, name).filter(holding)[:10]]
    return sorted(set(found))


def _require_parent(parent: RewardModel | None, project: Project, recipe: RecipeValue) -> None:
    try:
        require_backbone_parent(recipe, has_parent=parent is not None)
    except RewardError as error:
        raise DomainError(error.message, pointer=error.pointer) from error
    if parent is None:
        return
    if parent.project_id != project.pk:
        raise DomainError(
            f"{parent} is not in the project {project}; choose one of its models.", pointer="/parent"
        )
    lock_usable(parent)
    try:
        require_parent(recipe, parent.manifest)
    except RewardError as error:
        raise DomainError(
            f"{parent} cannot be the parent of this run: {error.message}", pointer=error.pointer
        ) from error


def _require_enough(dataset_version: DatasetVersion, objective: str) -> None:
    """Refuse early what the training process would refuse."""
    is_pairs = objective == "bradley_terry"
    count = dataset_version.usable_pairs if is_pairs else sum(dataset_version.records.values())
    if count < 2:
        what = f"{count} {'usable pair' if is_pairs else 'feedback record'}{'' if count == 1 else 's'}"
        raise DomainError(
            f"{dataset_version} has {what}; label at least two and freeze again.", pointer="/dataset"
        )


def _next_version(
    project: Project,
    name: str,
    *,
    artifact: str,
    manifest: dict[str, Any],
    run: TrainingRun | None,
    parent: RewardModel | None = None,
) -> RewardModel:
    Project.objects.select_for_update().get(pk=project.pk)  # one version at a time
    models = RewardModel.objects.filter(project=project, name=name)
    newest = models.aggregate(newest=Max("version"))["newest"] or 0
    return RewardModel.objects.create(
        project=project,
        name=name,
        version=newest + 1,
        training_run=run,
        parent=parent,
        artifact=artifact,
        manifest=manifest,
    )


def _user(by: By) -> User | None:
    return by if isinstance(by, User) else by.created_by if by else None
