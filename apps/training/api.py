"""The HTTP API of training runs and models."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key, require_scope
from apps.accounts.auth import KeyRequest
from apps.accounts.models import ApiKey, Scope
from apps.core.errors import NotFound
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.datasets.selectors import find_dataset_version
from apps.training.models import RewardModel, TrainingRun
from apps.training.selectors import model_named, models_of, runs_of
from apps.training.services import cancel_run, start_run
from apps.training.tracker_options import tracker_results
from workers.schema.builtin_recipes import AUTO
from workers.schema.trackers import TRACKER_PACKAGES

router = Router()


class RunIn(Schema):
    dataset: str = Field(description="name@version; by default the newest version")
    recipe: str | dict[str, Any] | None = Field(
        None,
        description=f"a recipe's name, TOML, or its keys and values; by default `{AUTO}`, with a parent its recipe",
    )
    name: str = Field("", description="of the model; by default the dataset's name")
    seed: int = 0
    parent: str = Field("", description="name@version of a model of the project, to fine-tune")
    track: list[str] = Field([], description=f"experiment trackers: {', '.join(TRACKER_PACKAGES)}")
    track_project: str = Field("", description="MLflow's experiment; W&B's and Trackio's project")
    track_weights: bool = Field(False, description="upload the model to the trackers, not only its manifest")


class TrackerOut(Schema):
    """url: of the run at the tracker, empty where it has none. problem: why it is not, or not completely, there."""

    url: str
    problem: str


class RunOut(Schema):
    run: int
    state: str
    dataset: str
    recipe: str
    seed: int
    parent: str | None
    progress: dict[str, Any]
    error: str
    model: str | None
    report: dict[str, Any] | None
    trackers: dict[str, TrackerOut]
    created: datetime
    started: datetime | None
    finished: datetime | None


class RunPage(Schema):
    items: list[RunOut]
    next: str | None


class ModelOut(Schema):
    model: str
    run: int | None
    parent: str | None
    dataset: str | None
    manifest: dict[str, Any]
    report: dict[str, Any] | None
    created: datetime


class ModelPage(Schema):
    items: list[ModelOut]
    next: str | None


@router.post("/projects/{slug}/runs", response={202: RunOut})
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
        by=request.auth,
    )
    return Status(202, run_out(run))


@router.get("/projects/{slug}/runs", response=RunPage)
def list_runs(
    request: KeyRequest, slug: str, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(runs_of(project), cursor=cursor, limit=limit)
    return {"items": [run_out(row) for row in page], "next": following}


@router.get("/runs/{int:pk}", response=RunOut)
def get_run(request: KeyRequest, pk: int) -> dict[str, Any]:
    return run_out(_run_of_key(request.auth, pk))


@router.post("/runs/{int:pk}/cancel", response=RunOut)
def post_cancel(request: KeyRequest, pk: int) -> dict[str, Any]:
    """Stop a run. A running one writes a checkpoint first, and can be resumed."""
    return run_out(cancel_run(run=_run_of_key(request.auth, pk), by=request.auth))


@router.get("/projects/{slug}/models", response=ModelPage)
def list_models(
    request: KeyRequest, slug: str, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> dict[str, Any]:
    """Newest first."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    page, following = paginate(models_of(project), cursor=cursor, limit=limit)
    return {"items": [model_out(row) for row in page], "next": following}


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
        "state": run.state,
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
