"""Executes the comparison of two models."""

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState, finish, keep_heartbeat
from apps.retraining.models import ModelComparison
from apps.training.evaluation import compare_models, dataset_version_data

_RESULT_KEYS = ("snapshot", "evaluation", "difference", "interval", "n", "tasks")


def execute_comparison(comparison: ModelComparison) -> None:
    """Compare on all splits in one process: shared trajectories are scored once. Raises ClaimLost, Interrupted."""
    cycle = comparison.cycle
    assert cycle.training_run is not None
    with keep_heartbeat(comparison):
        try:
            evaluations = compare_models(
                model=cycle.training_run.model,
                other=cycle.previous_model,
                data=[
                    dataset_version_data(version) for version in comparison.dataset_versions.order_by("pk")
                ],
                by=None,
            )
        except DomainError as error:
            finish(comparison, JobState.FAILED, error=error.message)
            return
    results = [
        evaluation.report["against"]
        | {"evaluation": evaluation.pk, "snapshot": evaluation.dataset_version_id}
        for evaluation in evaluations
    ]
    finish(
        comparison,
        JobState.SUCCEEDED,
        result=[{name: result[name] for name in _RESULT_KEYS} for result in results],
    )
