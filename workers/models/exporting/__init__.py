"""Models in the forms that others load.

`workers.schema.export_forms` says which there are. A form is a file of this package with
`write(source, folder, options) -> ExportUsage`, and a line in FORMS; what it writes is loaded again by the peer's own
class before it counts as written.
"""

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from workers.errors import RewardError
from workers.models.exporting.source import ExportOptions, ExportSource, ExportUsage
from workers.schema.export_forms import require_form

FORMS = {
    "transformers": "transformers_folder",
    "token-classifier": "token_classifier",
    "adapter": "adapter",
    "gguf": "gguf_file",
    "standalone": "standalone",
}
REQUEST, USAGE, FILES = "request.json", "usage.json", "files"


def export(source: Path, form: str, folder: Path, options: ExportOptions) -> ExportUsage:
    """Write the model of an artifact folder to a new folder. Raises RewardError where it has no such form."""
    found = ExportSource.read(source)
    require_form(form, found.manifest)
    if form not in FORMS:
        raise RewardError(f"The form {form!r} is a copy of the artifact; nothing is written of it.")
    folder.mkdir(parents=True, exist_ok=True)
    usage: ExportUsage = import_module(f"workers.models.exporting.{FORMS[form]}").write(
        found, folder, options
    )
    return usage


def run(folder: Path) -> None:
    """What request.json of the folder asks for: {source, form, options}; into files/, with usage.json next to it."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    usage = export(
        Path(request["source"]), request["form"], folder / FILES, ExportOptions(**request["options"])
    )
    (folder / USAGE).write_text(json.dumps(asdict(usage)), encoding="utf-8")
