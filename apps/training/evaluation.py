"""Evaluates models on data, in a child process."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.errors import DomainError
from apps.core.processes import core_subprocess
from apps.core.storage.artifacts import stage
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import data_folder
from apps.training import services
from apps.training.models import Evaluation, RewardModel
from apps.training.selectors import read_decisions, with_ancestors


@dataclass(frozen=True, slots=True)
class EvaluationData:
    """Records to evaluate on, and those to fit the temperature on. source: their name. format: jsonl, or one of
    PUBLISHED."""

    source: str
    records: Path
    validation: Path | None = None
    dataset_version: DatasetVersion | None = None
    format: str = "jsonl"


def dataset_version_data(dataset_version: DatasetVersion) -> EvaluationData:
    """Its test split."""
    if not dataset_version.splits.get("test"):
        raise DomainError(
            f"{dataset_version} has no test split; annotate at least three tasks and freeze again."
        )
    folder = data_folder(dataset_version)
    return EvaluationData(
        str(dataset_version), folder / "test.jsonl.zst", folder / "validation.jsonl.zst", dataset_version
    )


def of_file(path: Path, *, format_: str = "jsonl") -> EvaluationData:
    """A file of `export_dataset --format jsonl`, or of a published benchmark."""
    if not path.is_file():
        raise DomainError(f"The file {path} does not exist.")
    return EvaluationData(path.name, path.resolve(), format=format_)


def evaluate_model(*, model: RewardModel, data: EvaluationData, by: services.By) -> Evaluation:
    """Evaluate the model and store the report."""
    ((report, decisions),) = _reports(model, [data])
    return services.record_evaluation(
        model=model,
        dataset_version=data.dataset_version,
        source=data.source,
        report=report,
        decisions=decisions,
        by=by,
    )


def compare_models(
    *, model: RewardModel, other: RewardModel, data: Sequence[EvaluationData], by: services.By
) -> list[Evaluation]:
    """Evaluate the model on each, with its paired difference in accuracy to `other`: `against` in the reports."""
    return [
        services.record_evaluation(
            model=model,
            dataset_version=part.dataset_version,
            source=f"{part.source} against {other}",
            report=report | {"against": {"model": str(other)} | report["against"]},
            decisions=decisions,
            by=by,
        )
        for part, (report, decisions) in zip(data, _reports(model, data, against=other), strict=True)
    ]


def _reports(
    model: RewardModel, data: Sequence[EvaluationData], *, against: RewardModel | None = None
) -> list[tuple[dict[str, Any], list[Any] | None]]:
    """The reports with the decisions, in order; all data has the format, and validation or none, of the first."""
    with tempfile.TemporaryDirectory(prefix="evaluation-") as scratch:
        folder = Path(scratch)
        arguments = [
            str(stage(model.artifact)),
            "--device",
            settings.TRAINING_DEVICE,
            "--format",
            data[0].format,
        ]
        reports = [folder / f"report-{number}.json" for number, _ in enumerate(data)]
        for part, report in zip(data, reports, strict=True):
            arguments += ["--data", str(part.records), "--out", str(report)]
            if part.validation is not None:
                arguments += ["--validation", str(part.validation)]
        if data[0].format == "jsonl":
            arguments += _seen_arguments(model)
        if against is not None:
            arguments += ["--against", str(stage(against.artifact))]
        core_subprocess.run_to_end(
            "workers.evaluate", arguments, folder=folder, what=f"The evaluation of {model}"
        )
        return [
            (
                json.loads(report.read_text(encoding="utf-8")),
                read_decisions(report.with_suffix(".decisions.json")),
            )
            for report in reports
        ]


def _seen_arguments(model: RewardModel) -> list[str]:
    """What the model and its ancestors were trained on, as far as it is in this installation, and those of which it is
    not."""
    arguments = []
    for trained in with_ancestors(model):
        dataset_version = trained.training_run.dataset_version if trained.training_run else None
        if dataset_version is None or dataset_version.withdrawn_at is not None:
            arguments += ["--unknown", str(trained)]
        else:
            arguments += ["--seen", str(data_folder(dataset_version) / "train.jsonl.zst")]
    return arguments
