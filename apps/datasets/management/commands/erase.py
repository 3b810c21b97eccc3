"""`erase PROJECT --annotator NAME | --run N`: delete for good what somebody judged, or a run."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.models import Annotator
from apps.core.commands import TouchstoneCommand
from apps.core.errors import NotFound
from apps.datasets.erasure import erase_judgements, erase_trajectory, planned_of
from apps.trajectories.models import Trajectory


class Command(TouchstoneCommand):
    help = "Say what deleting somebody's judgements, or a run, takes along; with --yes, delete it for good."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument("--annotator", help="by name: an e-mail address, or what came with an import")
        target.add_argument("--run", type=int, help="by its number")
        parser.add_argument("--yes", action="store_true", help="do it")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        target: Annotator | Trajectory | None
        if options["annotator"] is not None:
            target = Annotator.objects.filter(project=project, name=options["annotator"]).first()
        else:
            rows = Trajectory.objects.select_related("project", "task").filter(project=project)
            target = rows.filter(pk=options["run"]).first()
        if target is None:
            raise NotFound(f"{project} has no such annotator or run.")
        if not options["yes"]:
            told = planned_of(target)
            self.say("This is what would go; with --yes it does.")
        elif isinstance(target, Annotator):
            told = erase_judgements(annotator=target, by=None)
        else:
            told = erase_trajectory(trajectory=target, by=None)
        self.say(
            f"{told.judgements} judgements, {told.items} items; "
            f"withdrawn: {', '.join(told.dataset_versions) or 'nothing'}"
        )
        return {
            "deleted": options["yes"],
            "judgements": told.judgements,
            "items": told.items,
            "withdrawn": list(told.dataset_versions),
        }
