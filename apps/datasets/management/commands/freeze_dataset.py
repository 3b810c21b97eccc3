"""`freeze_dataset PROJECT NAME [filters]`: a dataset version of the feedback, split by task."""

from pathlib import Path
from typing import Any, get_args

from django.core.management.base import CommandParser

from apps.accounts.services import project_for
from apps.annotation.feedback.records import ADJUDICATION, FILTERS, NAMES
from apps.core.commands import TouchstoneCommand
from apps.core.errors import DomainError
from apps.datasets.derived_records import DERIVED_SOURCES
from apps.datasets.models import DatasetVersion
from apps.datasets.services import freeze_dataset
from apps.datasets.version_builder import build_dataset_version
from workers.schema import Origin


class Command(TouchstoneCommand):
    help = "Freeze a project's feedback into the next version of a dataset."
    store_access = "check"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("project")
        parser.add_argument("name")
        parser.add_argument(
            "--campaign", action="append", dest="campaigns", help="only this campaign; can be repeated"
        )
        parser.add_argument("--kind", action="append", dest="kinds", choices=NAMES)
        parser.add_argument("--origin", action="append", dest="origins", choices=get_args(Origin))
        parser.add_argument(
            "--annotator", action="append", dest="annotators", help="only this annotator; can be repeated"
        )
        parser.add_argument(
            "--filter",
            metavar="QUERY",
            help="only of these trajectories, as the address of their list has it, such as agent=desk&success=no",
        )
        parser.add_argument("--since", help="only feedback since this ISO time")
        parser.add_argument(
            "--adjudication",
            choices=ADJUDICATION,
            help="for adjudicated items: only the adjudication (instead, default), all annotations (also), or "
            "only the other annotations (not)",
        )
        parser.add_argument(
            "--derived",
            action="append",
            default=[],
            choices=list(DERIVED_SOURCES),
            help="also include these derived labels, with origin `judge`; can be repeated",
        )
        parser.add_argument(
            "--test-tasks",
            type=Path,
            help="file of task IDs, one per line: exactly these form the test split",
        )
        parser.add_argument("--seed", type=int, default=0, help="assigns tasks to splits")

    def run(self, **options: Any) -> dict[str, Any]:
        test_tasks = _task_ids(options["test_tasks"]) if options["test_tasks"] else None
        dataset_version = freeze_dataset(
            project=project_for(options["project"]),
            name=options["name"],
            by=None,
            filters={name: options[name] for name in FILTERS if options[name]},
            derived=options["derived"],
            test_tasks=test_tasks,
            seed=options["seed"],
            claimed=True,
        )
        with self.progress(None, "records") as progress:
            build_dataset_version(dataset_version, report=lambda done: progress.update(done))
        self._tell(dataset_version)
        return {
            "name": str(dataset_version),
            "hash": dataset_version.content_hash,
            "records": dataset_version.records,
            "splits": dataset_version.splits,
            "usable_pairs": dataset_version.usable_pairs,
        }

    def _tell(self, dataset_version: DatasetVersion) -> None:
        kinds = ", ".join(f"{n} {kind}" for kind, n in dataset_version.records.items())
        splits = ", ".join(
            f"{name} {n} ({dataset_version.tasks[name]} tasks)" for name, n in dataset_version.splits.items()
        )
        self.say(f"{dataset_version}: {kinds}; {dataset_version.usable_pairs} usable pairs")
        self.say(f"  {splits}")
        self.say(f"  hash {dataset_version.content_hash}")
        if dataset_version.learnable_records < 2:
            self.say(
                "Next: nothing can be trained on it; import feedback (import_feedback) or annotate, and freeze again."
            )
        else:
            self.say(f"Next: train {dataset_version.project.slug} --dataset {dataset_version} --wait")


def _task_ids(path: Path) -> list[str]:
    if not path.is_file():
        raise DomainError(f"The file {path} does not exist.")
    found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not found:
        raise DomainError(f"{path} has no task IDs; write one per line.")
    return found
