"""The HTTP API of imports of public reward models."""

from datetime import datetime
from typing import Any

from ninja import Field, Router, Schema, Status
from pydantic import ConfigDict

from apps.accounts.access import project_of_key, require_scope
from apps.accounts.auth import KeyRequest
from apps.accounts.models import ApiKey, Scope
from apps.core.errors import NotFound
from apps.core.http.api_scopes import needs
from apps.training.document_schemas import TrainingProgress
from apps.training.import_services import cancel_import, start_import
from apps.training.models import ModelImport
from apps.training.selectors import imports_of
from workers.schema.import_options import OWN_TRAJECTORIES, TYPES

router = Router()


class ModelImportIn(Schema):
    source: str = Field(
        description="a name of the operator's list of model folders, or hf://ORG/NAME@REVISION of the hub"
    )
    name: str = Field("", description="of the model; by default the source's")
    options: dict[str, Any] = Field(
        default_factory=dict,
        description=f"`type` ({', '.join(TYPES)}), `label`, `text_form` and others, see docs/researchers.md",
    )
    calibration: str = Field(
        "",
        description=f"by what its rewards are measured: name@version of a dataset, or `{OWN_TRAJECTORIES}`; empty for "
        "median 0 and standard deviation 1",
    )
    dry_run: bool = Field(False, description="only say what the model is")


class RecognisedModel(Schema):
    """reward: which number it is. template: how conversations become tokens. reads: where in them the model is read."""

    model_config = ConfigDict(extra="allow")

    type: str
    architecture: str
    because: str
    labels: list[str]
    reward: str
    template: str
    reads: str
    parameters: int
    bytes: int
    max_tokens: int
    licence: str = ""
    notes: list[str] = []


class ModelImportOut(Schema):
    """recognised: once the model was looked at. model: once it is one of the project."""

    id: int
    state: str
    source: str
    name: str
    dry_run: bool
    progress: TrainingProgress
    error: str
    recognised: RecognisedModel | None
    model: str | None
    created: datetime
    started: datetime | None
    finished: datetime | None


@router.post(
    "/projects/{slug}/model-imports",
    response={202: ModelImportOut},
    operation_id="import_model",
    summary="Import a public reward model",
    openapi_extra=needs(Scope.TRAIN),
)
def post_import(request: KeyRequest, slug: str, body: ModelImportIn) -> Status[dict[str, Any]]:
    """Put the import in the queue; follow it with `GET /model-imports/{id}`."""
    model_import = start_import(
        project=project_of_key(request.auth, slug, Scope.TRAIN),
        source=body.source,
        name=body.name,
        options=body.options,
        calibration=body.calibration,
        dry_run=body.dry_run,
        by=request.auth,
    )
    return Status(202, import_out(model_import))


@router.get(
    "/model-imports/{int:pk}",
    response=ModelImportOut,
    operation_id="get_model_import",
    summary="An import of a public reward model",
    openapi_extra=needs(Scope.TRAIN),
)
def get_import(request: KeyRequest, pk: int) -> dict[str, Any]:
    return import_out(_import_of_key(request.auth, pk))


@router.post(
    "/model-imports/{int:pk}/cancel",
    response=ModelImportOut,
    operation_id="cancel_model_import",
    summary="Cancel an import of a public reward model",
    openapi_extra=needs(Scope.TRAIN),
)
def post_cancel_import(request: KeyRequest, pk: int) -> dict[str, Any]:
    return import_out(cancel_import(model_import=_import_of_key(request.auth, pk), by=request.auth))


def _import_of_key(key: ApiKey, pk: int) -> ModelImport:
    require_scope(key, Scope.TRAIN)
    found = imports_of(key.project).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no import of a model {pk} for this key.")
    return found


def import_out(model_import: ModelImport) -> dict[str, Any]:
    return {
        "id": model_import.pk,
        "state": model_import.state,
        "source": model_import.source,
        "name": model_import.model_name,
        "dry_run": model_import.dry_run,
        "progress": model_import.progress,
        "error": model_import.error,
        "recognised": model_import.recognised,
        "model": str(model_import.model) if model_import.model else None,
        "created": model_import.created_at,
        "started": model_import.started_at,
        "finished": model_import.finished_at,
    }
