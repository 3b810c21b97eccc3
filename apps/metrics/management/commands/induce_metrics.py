"""`induce_metrics PROJECT [--campaign C] [--language-model NAME]`: metrics from what people wrote."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.models import Campaign
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.llm.selectors import get_llm_connection
from apps.metrics.selectors import report
from apps.metrics.services import induce


class Command(TouchstoneCommand):
    help = "Induce metrics from what people wrote, and follow it to its end."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("--campaign", help="only the comments of this campaign")
        parser.add_argument(
            "--language-model", metavar="NAME", help="ask this one; otherwise the embedded engine does it"
        )
        parser.add_argument("--seed", type=int, default=0, help="of what is held out")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        campaign = None
        if options["campaign"]:
            campaign = Campaign.objects.filter(project=project, name=options["campaign"]).first()
            if campaign is None:
                raise NotFound(f"There is no campaign {options['campaign']} in {project.slug}.")
        name = options["language_model"]
        model = get_llm_connection(project, name) if name else None
        induction = induce(project=project, campaign=campaign, llm_connection=model, seed=options["seed"])
        self.follow(induction, str(induction))
        found = report(induction)
        if induction.state != JobState.SUCCEEDED:
            raise CommandFailed(f"{induction} {induction.state}. {induction.error}".rstrip(), result=found)
        for metric in found["metrics"]:
            self.say(f"{metric['name']}: {metric['definition']} ({len(metric['aspects'])} points)")
        if found["failed"]:
            self.say(
                f"{len(found['failed'])} comments and runs have no answer; judge again to ask for them again"
            )
        held_out = found["held_out"]
        self.say(
            f"{len(found['metrics'])} metrics; on {held_out['n']} points held out: coverage "
            f"{_share(held_out['coverage'])}, redundancy {_share(held_out['redundancy'])}"
        )
        return found


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
