"""`erase PROJECT --annotator NAME | --run N`: delete the annotations of an annotator, or a trajectory."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.models import Annotator
from apps.core.commands import TouchstoneCommand
from apps.core.errors import NotFound
from apps.datasets.erasure import erase_judgements, erase_trajectory, plan_erasure
from apps.trajectories.models import Trajectory


class Command(TouchstoneCommand):
    help = "Preview the deletion of an annotator's annotations or of a trajectory; with --yes, delete permanently."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        target = parser.add_mutually_exclusive_group(required=True)
        target.add_argument("--annotator", help="name: an e-mail address, or the name from an import")
        target.add_argument("--run", type=int, help="number of the trajectory")
        parser.add_argument("--yes", action="store_true", help="delete permanently instead of previewing")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        target: Annotator | Trajectory | None
        if options["annotator"] is not None:
            target = Annotator.objects.filter(project=project, name=options["annotator"]).first()
        else:
            rows = Trajectory.objects.select_related("project", "task").filter(project=project)
            target = rows.filter(pk=options["run"]).first()
        if target is None:
            raise NotFound(f"{project} has no such annotator or trajectory.")
        if not options["yes"]:
            summary = plan_erasure(target)
            self.say("Preview only; add --yes to delete.")
        elif isinstance(target, Annotator):
            summary = erase_judgements(annotator=target, by=None)
        else:
            summary = erase_trajectory(trajectory=target, by=None)
        self.say(
            f"{summary.judgements} judgements, {summary.items} items, "
            f"{summary.page_comments} comments on trajectory pages; "
            f"withdrawn: {', '.join(summary.dataset_versions) or 'nothing'}; "
            f"models trained on this data, which keep what they learnt: {', '.join(summary.models) or 'none'}"
        )
        return {
            "deleted": options["yes"],
            "judgements": summary.judgements,
            "items": summary.items,
            "page_comments": summary.page_comments,
            "withdrawn": list(summary.dataset_versions),
            "models": list(summary.models),
        }
