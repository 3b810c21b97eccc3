"""Executes a comparison of two models."""

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import JobState, finish, keep_heartbeat
from apps.monitoring.models import Comparing
from apps.training.evaluation import compare_models, dataset_version_data


def execute(comparing: Comparing) -> None:
    """To the end, all splits in one process: what is in both is scored once. Raises ClaimLost, Interrupted."""
    turn = comparing.turn
    assert turn.run is not None
    with keep_heartbeat(comparing):
        try:
            found = compare_models(
                model=turn.run.model,
                other=turn.against,
                data=[
                    dataset_version_data(dataset_version)
                    for dataset_version in comparing.dataset_versions.order_by("pk")
                ],
                by=None,
            )
        except DomainError as error:
            finish(comparing, JobState.FAILED, error=error.message)
            return
    said = [
        one.report["against"] | {"evaluation": one.pk, "snapshot": one.dataset_version_id} for one in found
    ]
    kept = ("snapshot", "evaluation", "difference", "interval", "n")
    finish(comparing, JobState.SUCCEEDED, result=[{name: one[name] for name in kept} for one in said])
