"""An import from a checkpoint to an artifact: recognise, convert, compare with the model's own code, calibrate."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.importing import Checkpoint, ImportOptions, Recognised, recognise, type_module
from workers.importing.calibration import UNCALIBRATED, calibrate
from workers.json_files import write_json
from workers.models.artifact import MANIFEST, LocalScorer, load_scorer, write_manifest
from workers.models.files import file_hash
from workers.schema import SCHEMA_VERSION, parse_json
from workers.schema.decode import require_object
from workers.text import template_fingerprint

REQUEST, RECOGNISED, MODEL = "request.json", "recognised.json", "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """source: {name, revision} as the model's page shows it. calibration: a file of `calibrate`, or None."""

    checkpoint: Path
    options: ImportOptions = field(default_factory=ImportOptions)
    source: dict[str, str] = field(default_factory=dict)
    calibration: Path | None = None
    dry_run: bool = False
    device: str = "cpu"
    code_version: str = ""

    @classmethod
    def read(cls, path: Path) -> "ImportRequest":
        values = require_object(parse_json(path.read_bytes()))
        for name in ("checkpoint", "calibration"):
            values[name] = Path(values[name]) if values.get(name) else None
        return cls(**values | {"options": ImportOptions.parse(values.get("options", {}))})


def run(folder: Path) -> None:
    """Of a folder with a request: writes what was recognised and, unless that is all, the artifact.

    Raises RewardError where the checkpoint cannot be imported.
    """
    request = ImportRequest.read(folder / REQUEST)
    checkpoint = Checkpoint(request.checkpoint)
    found = recognise(checkpoint, request.options)
    write_json(folder / RECOGNISED, found.as_json())
    if not request.dry_run:
        import_checkpoint(checkpoint, found, folder / MODEL, request)


def import_checkpoint(
    checkpoint: Checkpoint, found: Recognised, folder: Path, request: ImportRequest
) -> dict[str, Any]:
    """Write the artifact, and return its manifest. Raises RewardError."""
    type_ = type_module(found.type)
    folder.mkdir(parents=True)
    part: dict[str, Any] = type_.convert(checkpoint, found, folder, request.options)
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "criterion": None,
        "reward": UNCALIBRATED,
        "training": None,
        "template_fingerprint": None,
        **part,
        "snapshot": {},
        "parent": None,
        "code_version": request.code_version,
        "evaluation": None,
        "imported": {**request.source, **found.as_json(), "options": request.options.given()},
        "files": _hashes(folder),
    }
    write_manifest(folder, manifest)
    scorer = load_scorer(folder, device=request.device)
    _require_exact(scorer)
    manifest["template_fingerprint"] = template_fingerprint(scorer.renderer)
    manifest["template_rewrites"] = scorer.rewrites
    compare = getattr(type_, "check", None)
    manifest["imported"]["check"] = None if compare is None else compare(checkpoint, scorer, request.options)
    if request.calibration is not None:
        manifest |= calibrate(scorer, request.calibration, folder)
    write_manifest(folder, manifest | {"files": _hashes(folder)})
    return manifest


def _require_exact(scorer: LocalScorer) -> None:
    backbone = getattr(getattr(scorer, "model", None), "backbone", None)
    if backbone is not None and hasattr(backbone, "require_exact"):
        try:
            backbone.require_exact()
        except RewardError as error:
            raise RewardError(error.message) from None  # its pointer is that of a recipe


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: file_hash(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST}
