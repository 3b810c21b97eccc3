"""`export_model MODEL DIR`: the artifact folder of a model."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import record_audit
from apps.core.commands import TouchstoneCommand
from apps.training.selectors import model_named
from apps.training.transfer import export_model


class Command(TouchstoneCommand):
    help = "Copy a model's artifact to a folder."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("model", help="project/name@version; by default the newest version")
        parser.add_argument("dir", type=Path, help="a new or empty folder")

    def run(self, **options: Any) -> dict[str, Any]:
        model = model_named(options["model"])
        folder = export_model(model=model, folder=options["dir"])
        record_audit(project=model.project, actor=None, verb="model.exported", target=str(model))
        self.say(f"{model} is exported to {folder}")
        return {"model": str(model), "dir": str(folder)}
