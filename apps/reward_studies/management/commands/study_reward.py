"""`study_reward PROJECT weights|analysis --endpoint E`: fit weights of components, or analyse a reward."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.core.number_format import decimal, percent, significant
from apps.reward_studies.models import RewardStudy
from apps.reward_studies.services import (
    DEFAULT_SAMPLE,
    FEEDBACK_CHOICES,
    PROBE_NAMES,
    StudyOptions,
    spec_with_weights,
    start_reward_study,
)
from apps.rewards.selectors import endpoint_of


class Command(TouchstoneCommand):
    help = "Fit the weights of a reward's components to feedback, or analyse what the reward rewards; wait for the end."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("kind", choices=RewardStudy.Kind.values)
        parser.add_argument("--endpoint", help="whose active revision is studied")
        parser.add_argument("--spec", type=Path, help="a JSON file with components and transforms instead")
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--dataset", default="", help="dataset version, such as first@1")
        source.add_argument("--campaign", default="", help="name of a campaign")
        source.add_argument("--filter", default="", help="trajectories, such as agent=desk (default: all)")
        parser.add_argument("--sample", type=int, default=DEFAULT_SAMPLE, help="trajectories scored at most")
        parser.add_argument(
            "--feedback", choices=FEEDBACK_CHOICES, default="auto", help="what weights are fitted to"
        )
        parser.add_argument("--penalty", choices=("l1", "l2"), default="l1")
        parser.add_argument("--allow-negative", action="store_true", help="weights may be below 0")
        parser.add_argument("--no-probes", action="store_true", help="analyse without hacking probes")
        parser.add_argument("--out", type=Path, help="write the spec with the fitted weights to this file")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        study = start_reward_study(
            project=project,
            kind=options["kind"],
            spec=_read(options["spec"]),
            endpoint=endpoint_of(project, options["endpoint"]) if options["endpoint"] else None,
            filter=options["filter"],
            dataset=options["dataset"],
            campaign=options["campaign"],
            options=StudyOptions(
                sample=options["sample"],
                feedback=options["feedback"],
                penalty=options["penalty"],
                allow_negative=options["allow_negative"],
                probes=not options["no_probes"],
            ),
        )
        self.follow(study, study.title)
        report = {"number": study.number, "state": study.state, "result": study.result}
        if study.state != JobState.SUCCEEDED:
            raise CommandFailed(f"{study.title} {study.state}. {study.error}".rstrip(), result=report)
        for line in _weights(study) if study.kind == RewardStudy.Kind.WEIGHTS else _analysis(study):
            self.say(line)
        if options["out"]:
            options["out"].write_text(json.dumps(spec_with_weights(study), indent=2) + "\n")
        return report


def _read(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DomainError(f"{path} cannot be read as JSON: {error}") from None


def _weights(study: RewardStudy) -> list[str]:
    accuracy = study.result["accuracy"]
    lines = [
        f"{part['name']}: {significant(part['weight'])} [{significant(part['low'])}, {significant(part['high'])}]"
        for part in study.result["components"]
    ]
    shown = ", ".join(f"{name} {percent(accuracy[name]['value'])}" for name in accuracy)
    return [*lines, f"held-out accuracy: {shown}"]


def _analysis(study: RewardStudy) -> list[str]:
    lines = [
        f"{part['name']}: {percent(part['share'])} of the variance" for part in study.result["components"]
    ]
    for name in PROBE_NAMES:
        if (probe := study.result["probes"].get(name)) is not None:
            lines += [f"probe {name}: {decimal(probe['mean'], 3)} gained, {percent(probe['raised'])} raised"]
    return lines
