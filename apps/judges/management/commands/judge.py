"""`judge PROJECT JUDGE --campaign C`: run a judge over a campaign and measure its agreement with annotators."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.models import Campaign
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.judges.agreement import CriterionAgreement, agreement_with_humans, criterion_agreements
from apps.judges.models import JudgeResult, JudgeRun
from apps.judges.selectors import get_judge_by_name
from apps.judges.services import start_judge_run


class Command(TouchstoneCommand):
    help = "Run a judge over a campaign, wait for its end, and report its agreement with annotators."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("judge", help="name of the judge, as on the page Judges")
        parser.add_argument("--campaign", required=True)
        parser.add_argument(
            "--most", type=int, help="maximum number of items; items with annotations come first"
        )
        parser.add_argument("--prompt", type=int, help="version of the prompts (default: the judge's own)")
        parser.add_argument(
            "--hand-in", action="store_true", help="save the results as annotations with the origin `judge`"
        )

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        judge = get_judge_by_name(project, options["judge"])
        campaign = Campaign.objects.filter(project=project, name=options["campaign"]).first()
        if campaign is None:
            raise NotFound(f"There is no campaign {options['campaign']} in {project.slug}.")
        judge_run = start_judge_run(
            judge=judge,
            campaign=campaign,
            prompt=options["prompt"],
            max_items=options["most"],
            saves_annotations=options["hand_in"],
        )
        self.follow(judge_run, str(judge_run))
        agreements = criterion_agreements(agreement_with_humans(judge_run))
        report = _report(judge_run, agreements)
        if judge_run.state != JobState.SUCCEEDED:
            raise CommandFailed(f"{judge_run} {judge_run.state}. {judge_run.error}".rstrip(), result=report)
        for agreement in agreements:
            self.say(f"{agreement.name}: {_summary(agreement)}")
        if report["failed"]:
            self.say(f"{report['failed']} results have no answer; see and retry them on the judge run's page")
        return report


def _report(judge_run: JudgeRun, agreements: list[CriterionAgreement]) -> dict[str, Any]:
    state = JudgeResult.State
    return {
        "judging": judge_run.pk,
        "state": judge_run.state,
        "judge": judge_run.judge.annotator_name,
        "answered": judge_run.results.filter(state=state.DONE).count(),
        "failed": judge_run.results.filter(state=state.FAILED).count(),
        "handed_in": judge_run.annotations_saved_at is not None,
        "usage": judge_run.result.get("usage", {}),
        "agreement": [asdict(agreement) | {"trust": agreement.trust} for agreement in agreements],
    }


def _summary(agreement: CriterionAgreement) -> str:
    count = f"{agreement.n} rated by both"
    if agreement.alpha is None or agreement.interval is None:
        return f"{count}; {agreement.trust}"
    low, high = agreement.interval
    return f"alpha {agreement.alpha:.2f} [{low:.2f}, {high:.2f}], {count}; {agreement.trust}"
