"""`import_model PROJECT DIR`: register a model that was trained elsewhere."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.core.commands import TouchstoneCommand
from apps.training.transfer import import_model


class Command(TouchstoneCommand):
    help = "Register an artifact folder as a model of the project."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("dir", type=Path)
        parser.add_argument("--name", default="", help="of the model; by default the folder's name")

    def run(self, **options: Any) -> dict[str, Any]:
        folder: Path = options["dir"].resolve()
        project = project_for(options["project"])
        model = import_model(project=project, folder=folder, name=options["name"] or folder.name, by=None)
        self.say(f"{model} is registered")
        return {"model": str(model)}
