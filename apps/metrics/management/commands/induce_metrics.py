"""`induce_metrics PROJECT [--campaign C] [--language-model NAME]`: extract metrics from comments."""

from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.models import Campaign
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.llm.selectors import get_llm_connection
from apps.metrics.selectors import induction_report
from apps.metrics.services import start_induction


class Command(TouchstoneCommand):
    help = "Extract metrics from comments and wait for the end."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("--campaign", help="only the comments of this campaign")
        parser.add_argument(
            "--language-model", metavar="NAME", help="LLM connection to use (default: the embedded engine)"
        )
        parser.add_argument("--seed", type=int, default=0, help="seed of the held-out split")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        campaign = None
        if options["campaign"]:
            campaign = Campaign.objects.filter(project=project, name=options["campaign"]).first()
            if campaign is None:
                raise NotFound(f"There is no campaign {options['campaign']} in {project.slug}.")
        name = options["language_model"]
        connection = get_llm_connection(project, name) if name else None
        induction = start_induction(
            project=project, campaign=campaign, llm_connection=connection, seed=options["seed"]
        )
        self.follow(induction, str(induction))
        report = induction_report(induction)
        if induction.state != JobState.SUCCEEDED:
            raise CommandFailed(f"{induction} {induction.state}. {induction.error}".rstrip(), result=report)
        for metric in report["metrics"]:
            self.say(f"{metric['name']}: {metric['definition']} ({len(metric['aspects'])} points)")
        if report["failed"]:
            self.say(
                f"{len(report['failed'])} comments and trajectories have no answer; judge again to retry them"
            )
        held_out = report["held_out"]
        self.say(
            f"{len(report['metrics'])} metrics; on {held_out['n']} held-out points: coverage "
            f"{_share(held_out['coverage'])}, redundancy {_share(held_out['redundancy'])}"
        )
        return report


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
