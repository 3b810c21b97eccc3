"""index_trajectories PROJECT: full-text search and failure patterns for what was imported before there were any."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.core.commands import TouchstoneCommand
from apps.trajectories.selectors import unindexed_trajectories
from apps.trajectories.services import index_trajectories


class Command(TouchstoneCommand):
    help = "Look for words and failure patterns in trajectories imported by an older version."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")

    def run(self, *, project: str, **_: Any) -> dict[str, Any]:
        owner = project_for(project)
        with self.progress(unindexed_trajectories(owner).count(), "Indexing") as progress:
            indexed = index_trajectories(owner, progress.advance)
        self.say(f"{indexed} trajectories indexed.")
        return {"indexed": indexed}
