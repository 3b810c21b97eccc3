"""Models for others: a folder in a form that they load, with a model card."""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.errors import DomainError
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import stage
from apps.core.storage.model_folders import folder_of
from apps.training.card import model_card
from apps.training.models import ModelExport, RewardModel
from workers.errors import RewardError
from workers.schema.export_forms import OUT_TYPES, ExportForm, require_form

CARD = "README.md"
ARTIFACT = "artifact"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExportOptions:
    """form: of EXPORT_FORMS. base: by which name readers of an adapter load the model that it belongs to; by default
    the name that it was trained under. out_type: of OUT_TYPES, the numbers of a GGUF file."""

    form: str = ARTIFACT
    base: str = ""
    out_type: str = ""


def check_options(model: RewardModel, options: ModelExportOptions) -> ExportForm:
    """The form. Raises DomainError for one that the model does not have, and for options of other forms."""
    try:
        form = require_form(options.form, model.manifest)
    except RewardError as error:
        raise DomainError(error.message, pointer=error.pointer) from None
    if options.base and form.name != "adapter":
        raise DomainError(f"A base belongs to the form 'adapter', not to {form.name!r}.", pointer="/base")
    if len(options.base) > (longest := ModelExport._meta.get_field("base").max_length or 0):
        raise DomainError(
            f"The base has {len(options.base)} characters; write at most {longest}.", pointer="/base"
        )
    if options.out_type and form.name != "gguf":
        raise DomainError(
            f"An outtype belongs to the form 'gguf', not to {form.name!r}.", pointer="/out_type"
        )
    if options.out_type and options.out_type not in OUT_TYPES:
        raise DomainError(
            f"{options.out_type!r} is no outtype; choose from {', '.join(OUT_TYPES)}.", pointer="/out_type"
        )
    return form


def export_model(
    *,
    model: RewardModel,
    folder: Path,
    options: ModelExportOptions | None = None,
    check: Callable[[], None] = lambda: None,
) -> Path:
    """Write the model to a folder that is new or empty, with a model card. check: called while it is written."""
    options = options or ModelExportOptions()
    form = check_options(model, options)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DomainError(f"{folder} is there and not an empty folder; name a new one.")
    usage: dict[str, Any] | None = None
    if form.name == ARTIFACT:
        shutil.copytree(stage(model.artifact), folder, dirs_exist_ok=True)
    else:
        usage = _write(model, options, folder, check)
    (folder / CARD).write_text(model_card(model, usage, options.base), encoding="utf-8")
    return folder


def _write(
    model: RewardModel, options: ModelExportOptions, folder: Path, check: Callable[[], None]
) -> dict[str, Any]:
    """Have a child process write the form, on the disk of the folder; what it tells of its use."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder.parent) as scratch:
        work = Path(scratch)
        given = {"base": _base_folder(model), "base_name": options.base} if options.form == "adapter" else {}
        if options.form == "gguf":
            given = {"out_type": options.out_type or OUT_TYPES[1]}
        request = {"source": str(stage(model.artifact)), "form": options.form, "options": given}
        (work / "request.json").write_text(json.dumps(request), encoding="utf-8")
        core_subprocess.run_to_end(
            "workers.models.exporting",
            [scratch],
            folder=work,
            what=f"The export of {model} as {options.form}",
            check=check,
        )
        shutil.copytree(work / "files", folder, dirs_exist_ok=True, copy_function=shutil.move)
        usage: dict[str, Any] = json.loads((work / "usage.json").read_text(encoding="utf-8"))
    return usage


def _base_folder(model: RewardModel) -> str:
    """Where the pretrained model of its training is on this machine; empty where it is not."""
    named = model.training_run.recipe.get("decoder", "") if model.training_run else ""
    if not named or named not in settings.MODEL_DIRS:
        return ""
    try:
        return str(folder_of(named))
    except DomainError:
        return ""
