"""`compare MODEL MODEL --dataset NAME`: which of two models is correct more often, and whether that may be chance."""

from typing import Any

from django.core.management.base import CommandParser

from apps.core.commands import TouchstoneCommand
from apps.datasets.selectors import find_dataset_version
from apps.training.evaluation import compare_models, dataset_version_data
from apps.training.report_summary import comparison_in_words
from apps.training.selectors import model_named


class Command(TouchstoneCommand):
    help = "Compare two models on the test split of a dataset."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("model", help="project/name@version; by default the newest version")
        parser.add_argument("other", help="project/name@version; by default the newest version")
        parser.add_argument(
            "--dataset", required=True, help="project/name@version; by default the newest version"
        )

    def run(self, **options: Any) -> dict[str, Any]:
        model, other = model_named(options["model"]), model_named(options["other"])
        data = dataset_version_data(find_dataset_version(options["dataset"]))
        self.say(f"{model} against {other} on {data.source} ...")
        (found,) = compare_models(model=model, other=other, data=[data], by=None)
        report = found.report
        self.say(comparison_in_words(report["against"]))
        return {"model": str(model), "other": str(other), "report": report}
