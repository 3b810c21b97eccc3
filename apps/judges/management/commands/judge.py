"""`judge PROJECT JUDGE --campaign C`: have a judge go through a campaign, and hold it against people."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.models import Campaign
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import NotFound
from apps.core.jobs.job_queue import JobState
from apps.judges.agreement import Figure, figures_of, held_against_people
from apps.judges.models import JudgeResult, JudgeRun
from apps.judges.selectors import get_judge_by_name
from apps.judges.services import start_judge_run


class Command(TouchstoneCommand):
    help = "Have a judge go through a campaign, follow it to its end, and say how far it agrees with people."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("judge", help="its name, as on the page Judges")
        parser.add_argument("--campaign", required=True)
        parser.add_argument("--most", type=int, help="items at most, those first that people judged")
        parser.add_argument("--prompt", type=int, help="a version of the prompts, else the judge's own")
        parser.add_argument(
            "--hand-in", action="store_true", help="make its answers judgements, marked as a judge's"
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
        figures = figures_of(held_against_people(judge_run))
        found = _report(judge_run, figures)
        if judge_run.state != JobState.SUCCEEDED:
            raise CommandFailed(f"{judge_run} {judge_run.state}. {judge_run.error}".rstrip(), result=found)
        for one in figures:
            self.say(f"{one.name}: {_told(one)}")
        if found["failed"]:
            self.say(f"{found['failed']} have no answer; its page says why, and asks again")
        return found


def _report(judge_run: JudgeRun, figures: list[Figure]) -> dict[str, Any]:
    state = JudgeResult.State
    return {
        "judging": judge_run.pk,
        "state": judge_run.state,
        "judge": judge_run.judge.annotator_name,
        "answered": judge_run.results.filter(state=state.DONE).count(),
        "failed": judge_run.results.filter(state=state.FAILED).count(),
        "handed_in": judge_run.annotations_saved_at is not None,
        "usage": judge_run.result.get("usage", {}),
        "agreement": [asdict(one) | {"trust": one.trust} for one in figures],
    }


def _told(one: Figure) -> str:
    if one.alpha is None or one.interval is None:
        return f"{one.n} judged by both; {one.trust}"
    low, high = one.interval
    return f"alpha {one.alpha:.2f} [{low:.2f}, {high:.2f}] over {one.n} judged by both; {one.trust}"
