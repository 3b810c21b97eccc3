"""Reports without the names of people whose feedback was deleted, or whose account was."""

import json

from apps.datasets.erased_words import Erasure, with_other_names
from apps.training.models import Evaluation, TrainingRun
from apps.training.selectors import run_folder
from workers.schema.report_annotators import ANNOTATOR_KEYS


def rename_in_reports(erasure: Erasure) -> None:
    """In reports of runs, also in their folders, and of evaluations."""
    runs = TrainingRun.objects.filter(project=erasure.project)
    for run in runs:
        report = with_other_names(run.report, erasure.names, under=ANNOTATOR_KEYS)
        if report != run.report:
            TrainingRun.objects.filter(pk=run.pk).update(report=report)
        _rename_in_file(run, erasure)
    for evaluation in Evaluation.objects.filter(model__project=erasure.project):
        report = with_other_names(evaluation.report, erasure.names, under=ANNOTATOR_KEYS)
        if report != evaluation.report:
            Evaluation.objects.filter(pk=evaluation.pk).update(report=report)


def _rename_in_file(run: TrainingRun, erasure: Erasure) -> None:
    path = run_folder(run) / "report.json"
    if not path.is_file():
        return
    report = json.loads(path.read_text(encoding="utf-8"))
    renamed = with_other_names(report, erasure.names, under=ANNOTATOR_KEYS)
    if renamed != report:
        scratch = path.with_name(".report.json.part")
        scratch.write_text(json.dumps(renamed), encoding="utf-8")
        scratch.replace(path)
