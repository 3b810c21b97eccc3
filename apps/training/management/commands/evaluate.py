"""`evaluate MODEL --dataset NAME|--file FILE`: the report of a model on data it has not seen."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.datasets.selectors import find_dataset_version
from apps.training.evaluation import dataset_version_data, evaluate_model, of_file
from apps.training.report_summary import summarize
from apps.training.selectors import model_named
from workers.schema.published import PUBLISHED


class Command(TouchstoneCommand):
    help = "Evaluate a model on the test split of a dataset, or on a file of records."
    store_access = "check"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("model", help="project/name@version; by default the newest version")
        given = parser.add_mutually_exclusive_group(required=True)
        given.add_argument("--dataset", help="project/name@version; by default the newest version")
        given.add_argument("--file", type=Path, help="records in the format of export_dataset --format jsonl")
        parser.add_argument(
            "--format",
            choices=("jsonl", *PUBLISHED),
            default="jsonl",
            help="of FILE; a published benchmark is read and measured in its own way",
        )

    def run(self, **options: Any) -> dict[str, Any]:
        model = model_named(options["model"])
        if options["file"]:
            data = of_file(options["file"], format_=options["format"])
        else:
            data = dataset_version_data(find_dataset_version(options["dataset"]))
        self.say(f"{model} on {data.source} ...")
        evaluation = evaluate_model(model=model, data=data, by=None)
        self.say(summarize(evaluation.report).sentence)
        return {"model": str(model), "report": evaluation.report}
