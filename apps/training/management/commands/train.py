"""`train PROJECT --dataset NAME [--recipe FILE.toml|NAME]`: queue a training run; `--wait` waits for its end."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.core.commands import CommandFailed, TouchstoneCommand
from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState
from apps.datasets.selectors import find_dataset_version
from apps.training import recipes
from apps.training.deploy_checks import failed_checks
from apps.training.launching.launchers import NAMES
from apps.training.models import LOCAL, TrainingRun
from apps.training.report_summary import summarize
from apps.training.selectors import model_named
from apps.training.services import start_run
from apps.training.tracker_options import tracker_results
from workers.schema.builtin_recipes import AUTO
from workers.schema.recipe import Recipe
from workers.schema.trackers import TRACKER_PACKAGES


class Command(TouchstoneCommand):
    help = "Train a reward model on a frozen dataset."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("--dataset", required=True, help="name@version; by default the newest version")
        parser.add_argument(
            "--recipe",
            help=f"a TOML file, or a recipe's name such as bradley-terry; by default {AUTO}, which compares a few of "
            "them on the training data, or the parent's recipe",
        )
        parser.add_argument("--name", default="", help="of the model; by default the dataset's name")
        parser.add_argument(
            "--parent", default="", help="name@version of a model of the project, to fine-tune"
        )
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument(
            "--track",
            action="append",
            default=[],
            metavar="TRACKER",
            help=f"also log to {', '.join(TRACKER_PACKAGES)}; may be repeated. Addresses and keys are in the "
            "environment of the worker (docs/tracking.md)",
        )
        parser.add_argument(
            "--track-project", default="", help="MLflow's experiment; W&B's and Trackio's project"
        )
        parser.add_argument(
            "--track-weights", action="store_true", help="upload the model too, not only its manifest"
        )
        parser.add_argument(
            "--on",
            choices=NAMES,
            default=LOCAL,
            help="where it trains; clusters are set up by the operator (docs/clusters.md)",
        )
        parser.add_argument("--hosts", type=int, help="of a cluster; by default one")
        parser.add_argument(
            "--gpus", type=int, help="on each host of a cluster; by default what the installation sets"
        )
        parser.add_argument("--wait", action="store_true", help="wait until the run has ended")

    def run(self, **options: Any) -> dict[str, Any]:
        project = project_for(options["project"])
        run = start_run(
            project=project,
            dataset_version=find_dataset_version(options["dataset"], project=project),
            recipe=_recipe(options["recipe"]),
            name=options["name"],
            seed=options["seed"],
            parent=model_named(options["parent"], project=project) if options["parent"] else None,
            track=options["track"],
            track_project=options["track_project"],
            track_weights=options["track_weights"],
            on=options["on"],
            hosts=options["hosts"],
            gpus=options["gpus"],
            by=None,
        )
        self.say(f"run {run.pk} on {run.dataset_version} is queued")
        if options["wait"]:
            self.follow(run, f"run {run.pk}")
        if run.is_finished:
            for tracker in tracker_results(
                run.tracker_options, run.tracker_states, is_finished=run.is_finished
            ):
                self.say(tracker.sentence)
        result = _result(run)
        if run.state in (JobState.FAILED, JobState.CANCELLED):
            raise CommandFailed(f"run {run.pk} {run.state}. {run.error}".rstrip(), result=result)
        if run.state == JobState.SUCCEEDED:
            self.say(f"{result['model']}: {summarize(run.report or {}).sentence}")
            if failed := failed_checks(run.report):
                self.say(
                    f"Next: more feedback of more tasks, then freeze and train again. {' '.join(failed)}"
                )
            else:
                self.say(f"Next: deploy {result['model']} {project.slug}")
        return result


def _recipe(given: str | None) -> Recipe | str | None:
    if given is None or not given.endswith(".toml"):
        return given
    path = Path(given)
    if not path.is_file():
        raise DomainError(f"The file {given} does not exist.")
    return recipes.check(path.read_text(encoding="utf-8"))


def _result(run: TrainingRun) -> dict[str, Any]:
    model = getattr(run, "model", None)
    return {"run": run.pk, "state": run.state, "model": str(model) if model else None, "report": run.report}
