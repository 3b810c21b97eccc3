"""The writes of imports of public reward models."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils.text import slugify

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.core.storage.model_folders import check_listed
from apps.core.version_names import check_slug
from apps.datasets.selectors import find_dataset_version, require_frozen
from apps.training.hub_models import PREFIX as HUB
from apps.training.hub_models import HubModelName
from apps.training.models import ModelImport
from workers.errors import RewardError
from workers.schema.import_options import OWN_TRAJECTORIES, ImportOptions

ADVANCE = "apps.training.tasks.advance_model_imports"
By = User | ApiKey | None  # None is the command line


@transaction.atomic
def start_import(
    *,
    project: Project,
    source: str,
    by: By,
    name: str = "",
    options: Mapping[str, Any] | None = None,
    calibration: str = "",
    dry_run: bool = False,
) -> ModelImport:
    """Put the import of a public reward model in the queue.

    source: a name of TOUCHSTONE_MODEL_DIRS, or hf://ORG/NAME@REVISION. name: of the model; by default the source's.
    options: see ImportOptions. calibration: `trajectories` or a dataset version, empty for none. dry_run: only say what
    it is.
    """
    source = source.strip()
    if source.startswith(HUB):
        HubModelName.parse(source, pointer="/source")
    else:
        check_listed(source, pointer="/source")
    if calibration and calibration != OWN_TRAJECTORIES:
        require_frozen(find_dataset_version(calibration, project=project))
    allowed = [option.name for option in ImportOptions.without_paths()]
    if refused := next((key for key in options or {} if key not in allowed), None):
        raise DomainError(
            f"unknown option {refused!r}; known are {', '.join(allowed)}.", pointer=f"/options/{refused}"
        )
    try:
        given = ImportOptions.parse(options or {}).given()
    except RewardError as error:
        raise DomainError(error.message, pointer=error.pointer) from error
    model_import = ModelImport.objects.create(
        project=project,
        source=source,
        options=given,
        calibration=calibration,
        model_name=check_slug(name or own_name(source), what="model"),
        dry_run=dry_run,
        started_by=by if isinstance(by, User) else by.created_by if by else None,
    )
    record_audit(
        project=project, actor=by, verb="model.import_started", target=source, data={"dry_run": dry_run}
    )
    job_queue.nudge_on_commit(ADVANCE)
    return model_import


@transaction.atomic
def cancel_import(*, model_import: ModelImport, by: By) -> ModelImport:
    if model_import.is_finished:
        raise Conflict(f"Import {model_import.pk} is already {model_import.state}.")
    job_queue.request_cancel(model_import)
    record_audit(
        project=model_import.project, actor=by, verb="model.import_cancelled", target=str(model_import)
    )
    return model_import


def own_name(source: str) -> str:
    """The name of a model that comes from a folder, or from the hub."""
    last = source.partition("@")[0].rpartition("/")[2]
    return slugify(last.replace(".", "-"))[:60].strip("-")
