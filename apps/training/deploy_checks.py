"""What a person should know of a model before it serves rewards, and the checks that it fails."""

from dataclasses import dataclass
from typing import Any

from apps.datasets.models import DatasetVersion
from apps.training.models import Evaluation, RewardModel
from apps.training.paired_decisions import PairedDifference, model_difference
from apps.training.report_measures import Baseline, Measure, measures
from apps.training.report_summary import annotator_accuracy, result_in_words

CHANCE_MARGIN = 0.02  # an accuracy, an AUC or a correlation below chance and this needs a reason
_FAILED = ("leak", "worse_than_chance", "length")  # findings of workers.evaluate.diagnostics


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """measure: the first of its report, None where it has none. ceiling: how often one annotator agrees with others.

    failed: sentences. difference: to the model it replaces, on the same comparisons. other: that model.
    served_as: the number of the active revision where that serves this very model.
    """

    model: RewardModel
    measure: Measure | None
    ceiling: dict[str, Any] | None
    calibration_error: float | None
    dataset_version: DatasetVersion | None
    failed: list[str]
    other: RewardModel | None = None
    difference: PairedDifference | None = None
    served_as: int | None = None

    @property
    def shown_baselines(self) -> list[tuple[str, Baseline]]:
        """The strongest one on the held-out data, and the one that was chosen without them where it is another."""
        baselines = self.measure.baselines if self.measure else []
        chosen = [baseline for baseline in baselines[1:] if baseline.is_best]
        strongest = [("Strongest baseline", baseline) for baseline in baselines[:1]]
        return [*strongest, *(("Baseline chosen in training", baseline) for baseline in chosen)]

    @property
    def unbeaten(self) -> list[Baseline]:
        """None where there are too few tasks for any conclusion: a check says so."""
        if self.measure is None or self.measure.has_few_tasks:
            return []
        return [baseline for baseline in self.measure.baselines if not baseline.is_beaten]


def model_evidence(
    model: RewardModel, *, other: RewardModel | None = None, served_as: int | None = None
) -> ModelEvidence:
    """other: the model that is served now, where it is another one. served_as: as in `ModelEvidence`."""
    report = model_report(model) or {}
    run = model.training_run
    replaced = other if other is not None and other.pk != model.pk else None
    return ModelEvidence(
        model,
        next(iter(measures(report)), None),
        annotator_accuracy(report),
        (report.get("calibration") or {}).get("ece"),
        run.dataset_version if run else None,
        failed_checks(report),
        replaced,
        model_difference(model, replaced) if replaced is not None else None,
        served_as,
    )


def model_report(model: RewardModel) -> dict[str, Any] | None:
    """Of its training; of a model from elsewhere, its newest evaluation here."""
    if model.training_run is not None and model.training_run.report:
        return model.training_run.report
    newest = Evaluation.objects.filter(model=model).order_by("-pk").first()
    return newest.report if newest else None


def failed_checks(report: dict[str, Any] | None) -> list[str]:
    """Sentences; none for a model without a report, of which nothing is known."""
    failed = []
    first = next(iter(measures(report)), None)
    if first is not None and first.chance is not None:
        low = first.interval[0] if first.interval else first.value
        if first.value < first.chance + CHANCE_MARGIN:
            failed.append(f"{result_in_words(first)}: not above chance.")
        elif low <= first.chance and not first.has_few_tasks:
            failed.append(f"{result_in_words(first)}: not shown to be better than chance.")
    failed += [
        finding["sentence"]
        for finding in (report or {}).get("findings") or []
        if finding["name"] in _FAILED
        and not (finding["name"] == "worse_than_chance" and first and finding.get("kind") == first.kind)
    ]
    return failed
