"""The HTTP API of exports of models."""

from datetime import datetime
from typing import Any

from django.http import FileResponse
from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key, require_scope
from apps.accounts.auth import KeyRequest
from apps.accounts.models import ApiKey, Scope
from apps.core.errors import NotFound
from apps.core.http.api_scopes import needs
from apps.core.http.media_types import binary_file
from apps.core.storage.artifacts import open_file
from apps.training.document_schemas import TrainingProgress
from apps.training.model_export import ModelExportOptions
from apps.training.model_export_jobs import cancel_model_export, file_name, start_model_export
from apps.training.models import ModelExport
from apps.training.selectors import model_named
from workers.schema.export_forms import EXPORT_FORMS, OUT_TYPES

router = Router()
TAR = "application/x-tar"


class ModelExportIn(Schema):
    format: str = Field("transformers", description=f"of {', '.join(EXPORT_FORMS)}")
    base: str = Field("", description="of an adapter: the name of its pretrained model for those who load it")
    outtype: str = Field(
        "", description=f"of a GGUF file, its numbers: {', '.join(OUT_TYPES)} (default: f16)"
    )


class ModelExportOut(Schema):
    """size: of the file in bytes, 0 until it is there; sha256: of the file."""

    export: int
    model: str
    format: str
    state: str
    progress: TrainingProgress
    error: str
    size: int
    sha256: str
    created: datetime
    finished: datetime | None


@router.post(
    "/projects/{slug}/models/{name}/exports",
    response={202: ModelExportOut},
    operation_id="start_model_export",
    summary="Export a model",
    openapi_extra=needs(Scope.TRAIN),
)
def post_model_export(
    request: KeyRequest, slug: str, name: str, body: ModelExportIn
) -> Status[dict[str, Any]]:
    """Have a worker write the model in a form that others load; follow it with `GET /model-exports/{id}`."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    export = start_model_export(
        model=model_named(name, project=project),
        options=ModelExportOptions(form=body.format, base=body.base, out_type=body.outtype),
        by=request.auth,
    )
    return Status(202, model_export_out(export))


@router.get(
    "/model-exports/{int:pk}",
    response=ModelExportOut,
    summary="An export of a model",
    openapi_extra=needs(Scope.TRAIN),
)
def get_model_export(request: KeyRequest, pk: int) -> dict[str, Any]:
    """How far it is."""
    return model_export_out(_export_of_key(request.auth, pk))


@router.post(
    "/model-exports/{int:pk}/cancel",
    response=ModelExportOut,
    operation_id="cancel_model_export",
    summary="Cancel an export of a model",
    openapi_extra=needs(Scope.TRAIN),
)
def post_cancel_model_export(request: KeyRequest, pk: int) -> dict[str, Any]:
    """Nothing is kept of it."""
    export = _export_of_key(request.auth, pk)
    cancel_model_export(export=export)
    return model_export_out(export)


@router.get(
    "/model-exports/{int:pk}/file",
    summary="The file of an export of a model",
    openapi_extra=needs(Scope.TRAIN) | binary_file(TAR, "A tar file of the model's folder"),
)
def download_model_export(request: KeyRequest, pk: int) -> FileResponse:
    """A tar file with one folder. It is removed some days after it was written, and with its model."""
    return model_export_response(_export_of_key(request.auth, pk))


def model_export_response(export: ModelExport) -> FileResponse:
    """The file as a download. Raises NotFound where there is none (any more)."""
    if not export.is_there:
        raise NotFound("The file of this export was removed or is not ready. Create the export again.")
    file = open_file(export.artifact)
    return FileResponse(file, as_attachment=True, filename=file_name(export), content_type=TAR)


def model_export_out(export: ModelExport) -> dict[str, Any]:
    return {
        "export": export.pk,
        "model": str(export.model),
        "format": export.form,
        "state": export.state,
        "progress": export.progress,
        "error": export.error,
        "size": export.size,
        "sha256": export.sha256,
        "created": export.created_at,
        "finished": export.finished_at,
    }


def _export_of_key(key: ApiKey, pk: int) -> ModelExport:
    require_scope(key, Scope.TRAIN)
    rows = ModelExport.objects.select_related("model__project")
    export = rows.filter(model__project=key.project, model__deleted_at=None, pk=pk).first()
    if export is None:
        raise NotFound(f"There is no export of a model {pk} for this key.")
    return export
