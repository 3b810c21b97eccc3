"""The HTTP API of training runs and models."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key, require_scope
from apps.accounts.auth import KeyRequest
from apps.accounts.models import ApiKey, Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate, paginate_from_first
from apps.core.http.api_schemas import Cursor, Limit
from apps.core.http.api_scopes import needs
from apps.datasets.selectors import find_dataset_version
from apps.training.document_schemas import (
    ManifestDocument,
    RecipeDocument,
    ReportDocument,
    TrainingProgress,
)
from apps.training.launching.launchers import NAMES
from apps.training.launching.state import job_in_words
from apps.training.models import LOCAL, RewardModel, TrainingRun
from apps.training.selectors import model_named, models_of, run_events, runs_of
from apps.training.services import cancel_run, start_run
from apps.training.tracker_options import tracker_results
from workers.schema.builtin_recipes import AUTO
from workers.schema.trackers import TRACKER_PACKAGES

router = Router()


class RunIn(Schema):
    dataset: str = Field(description="name@version; by default the newest version")
    recipe: str | RecipeDocument | None = Field(
        None,
        description=f"a recipe's name, TOML, or its keys and values; by default `{AUTO}`, with a parent its recipe",
    )
    name: str = Field("", description="of the model; by default the dataset's name")
    seed: int = 0
    parent: str = Field("", description="name@version of a model of the project, to fine-tune")
    track: list[str] = Field([], description=f"experiment trackers: {', '.join(TRACKER_PACKAGES)}")
    track_project: str = Field("", description="MLflow's experiment; W&B's and Trackio's project")
    on: str = Field(LOCAL, description=f"where it trains: {', '.join(NAMES)}, as far as they are set up")
    hosts: int | None = Field(None, description="of a cluster; by default one")
    gpus: int | None = Field(
        None, description="on each host of a cluster; by default what the installation sets"
    )
    track_weights: bool = Field(False, description="upload the model to the trackers, not only its manifest")


class TrackerOut(Schema):
    """url: of the run at the tracker, empty where it has none. problem: why it is not, or not completely, there."""

    url: str
    problem: str


class RunOut(Schema):
    run: int
    number: int = Field(description="within the project")
    state: str
    on: str = Field(description="the launcher")
    job: str = Field(description="of a run on a cluster: its job there, in words")
    dataset: str
    recipe: str
    seed: int
    parent: str | None
    progress: TrainingProgress
    error: str
    model: str | None
    report: ReportDocument | None
    trackers: dict[str, TrackerOut]
    created: datetime
    started: datetime | None
    finished: datetime | None


class RunPage(Schema):
    items: list[RunOut]
    next: str | None


class RunEventOut(Schema):
    """A line that the training wrote: losses and measures of a step, or a message."""

    id: int = Field(description="rises with time: `after` takes it")
    attempt: int
    data: dict[str, Any] = Field(description="what was logged, as the trainer wrote it")
    at: datetime


class RunEventPage(Schema):
    items: list[RunEventOut]
    next: str | None = Field(description="null where there is no more yet")


class RunLogOut(Schema):
    run: int
    state: str
    error: str
    log: str = Field(description="the end of what the process printed")


class ModelOut(Schema):
    model: str
    run: int | None
    parent: str | None
    dataset: str | None
    manifest: ManifestDocument
    report: ReportDocument | None
    created: datetime


class ModelPage(Schema):
    items: list[ModelOut]
    next: str | None


@router.post(
    "/projects/{slug}/runs",
    response={202: RunOut},
    operation_id="start_run",
    summary="Start a training run",
    openapi_extra=needs(Scope.TRAIN),
)
def post_run(request: KeyRequest, slug: str, body: RunIn) -> Status[dict[str, Any]]:
    """Put a training run in the queue; follow it with `GET /runs/{id}`."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    run = start_run(
        project=project,
        dataset_version=find_dataset_version(body.dataset, project=project),
        recipe=body.recipe,
        name=body.name,
        seed=body.seed,
        parent=model_named(body.parent, project=project) if body.parent else None,
        track=body.track,
        track_project=body.track_project,
        track_weights=body.track_weights,
        on=body.on,
        hosts=body.hosts,
        gpus=body.gpus,
        by=request.auth,
    )
    return Status(202, run_out(run))


@router.get(
    "/projects/{slug}/runs", response=RunPage, summary="List training runs", openapi_extra=needs(Scope.TRAIN)
)
def list_runs(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(runs_of(project), cursor=cursor, limit=limit)
    return {"items": [run_out(row) for row in page], "next": following}


@router.get("/runs/{int:pk}", response=RunOut, summary="A training run", openapi_extra=needs(Scope.TRAIN))
def get_run(request: KeyRequest, pk: int) -> dict[str, Any]:
    return run_out(_run_of_key(request.auth, pk))


@router.post(
    "/runs/{int:pk}/cancel",
    response=RunOut,
    operation_id="cancel_run",
    summary="Cancel a training run",
    openapi_extra=needs(Scope.TRAIN),
)
def post_cancel(request: KeyRequest, pk: int) -> dict[str, Any]:
    """Stop a run. A running one writes a checkpoint first, and can be resumed."""
    return run_out(cancel_run(run=_run_of_key(request.auth, pk), by=request.auth))


@router.get(
    "/runs/{int:pk}/events",
    response=RunEventPage,
    summary="Events of a training run",
    openapi_extra=needs(Scope.TRAIN),
)
def list_run_events(
    request: KeyRequest,
    pk: int,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
    after: int = 0,
) -> dict[str, Any]:
    """What the training logged, oldest first. after: only what came after the event with this `id`.

    Of an attempt that resumed from a checkpoint, what was logged after the checkpoint is replaced.
    """
    rows = run_events(_run_of_key(request.auth, pk), after=after)
    page, following = paginate_from_first(rows, cursor=cursor, limit=limit)
    items = [{"id": row.pk, "attempt": row.attempt, "data": row.data, "at": row.at} for row in page]
    return {"items": items, "next": following}


@router.get(
    "/runs/{int:pk}/log",
    response=RunLogOut,
    summary="Log of a training run",
    openapi_extra=needs(Scope.TRAIN),
)
def get_run_log(request: KeyRequest, pk: int) -> dict[str, Any]:
    """The end of what the process of the training printed; of a run that failed it says why."""
    run = _run_of_key(request.auth, pk)
    return {"run": run.pk, "state": run.state, "error": run.error, "log": run.log_tail}


@router.get(
    "/projects/{slug}/models", response=ModelPage, summary="List models", openapi_extra=needs(Scope.TRAIN)
)
def list_models(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(models_of(project), cursor=cursor, limit=limit)
    return {"items": [model_out(row) for row in page], "next": following}


@router.get(
    "/projects/{slug}/models/{name}",
    response=ModelOut,
    summary="A model",
    openapi_extra=needs(Scope.TRAIN),
)
def get_model(request: KeyRequest, slug: str, name: str) -> dict[str, Any]:
    """One version (`name@version`), or the newest (`name`)."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    return model_out(model_named(name, project=project))


def _run_of_key(key: ApiKey, pk: int) -> TrainingRun:
    require_scope(key, Scope.TRAIN)
    run = runs_of(key.project).filter(pk=pk).first()
    if run is None:
        raise NotFound(f"There is no run {pk} for this key.")
    return run


def run_out(run: TrainingRun) -> dict[str, Any]:
    model = getattr(run, "model", None)
    return {
        "run": run.pk,
        "number": run.number,
        "state": run.state,
        "on": run.launcher,
        "job": job_in_words(run),
        "dataset": str(run.dataset_version),
        "recipe": run.recipe_name,
        "seed": run.seed,
        "parent": str(run.parent) if run.parent else None,
        "progress": run.progress,
        "error": run.error,
        "model": str(model) if model else None,
        "report": run.report,
        "trackers": {
            result.name: {"url": result.url, "problem": result.problem}
            for result in tracker_results(
                run.tracker_options, run.tracker_states, is_finished=run.is_finished
            )
        },
        "created": run.created_at,
        "started": run.started_at,
        "finished": run.finished_at,
    }


def model_out(model: RewardModel) -> dict[str, Any]:
    run = model.training_run
    return {
        "model": str(model),
        "run": run.pk if run else None,
        "parent": str(model.parent) if model.parent else None,
        "dataset": str(run.dataset_version) if run else None,
        "manifest": model.manifest,
        "report": run.report if run else None,
        "created": model.created_at,
    }
