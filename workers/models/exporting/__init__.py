"""Models in the forms that others load.

`workers.schema.export_forms` says which there are. A form is a file of this package with
`write(source, folder, options) -> ExportUsage`, and a line in FORMS; what it writes is loaded again by the peer's own
class before it counts as written.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from workers.errors import RewardError
from workers.models.exporting.source import ExportOptions, ExportSource, ExportUsage
from workers.schema.conditions import TITLES, Condition
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
    conditioned = (found.manifest.get("text") or {}).get("conditioned")
    return usage.with_section(*_conditions(conditioned, form)) if conditioned else usage


def _conditions(conditioned: Sequence[Condition], form: str) -> tuple[str, str]:
    """What an exported model reads next to a conversation, and how it is told."""
    how = "Give each input a text under these names."
    if form != "standalone":
        lines = "\n\n".join(f"{TITLES[name]}:\n..." for name in conditioned)
        how = (
            "They stand in a separate `user` message, right before the first message of the assistant; leave out "
            f"what does not apply:\n\n```\n{lines}\n```"
        )
    return (
        "What it reads next to a conversation",
        f"Its reward depends on the {', '.join(conditioned)} too. {how}",
    )


def run(folder: Path) -> None:
    """What request.json of the folder asks for: {source, form, options}; into files/, with usage.json next to it."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    usage = export(
        Path(request["source"]), request["form"], folder / FILES, ExportOptions(**request["options"])
    )
    (folder / USAGE).write_text(json.dumps(asdict(usage)), encoding="utf-8")
