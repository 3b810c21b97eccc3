"""`export_project PROJECT --out FILE`: one archive of a project, which `import_project` reads."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for, record_audit
from apps.core.commands import TouchstoneCommand
from apps.core.errors import Conflict
from apps.lifecycle.project_archive import write_project


class Command(TouchstoneCommand):
    help = "Write a project's data into one archive: trajectories, feedback, rubrics, datasets, models, endpoints."
    store_access = "read"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--out", type=Path, required=True, help="file to write, such as project.zip")

    def run(self, *, project: str, out: Path, **_: Any) -> dict[str, Any]:
        found = project_for(project)
        if out.exists():
            raise Conflict(f"{out} exists already; choose another name.")
        with out.open("xb") as file:
            counts = write_project(found, file)
        record_audit(project=found, actor=None, verb="project.exported", target=found.slug, data=counts)
        return {"file": str(out), **counts}
