"""Executes a comparison of two models."""

from apps.core.errors import DomainError
from apps.core.jobs import JobState, finish, heart
from apps.monitoring.models import Comparing
from apps.training.evaluation import compare_models, of_snapshot


def execute(comparing: Comparing) -> None:
    """To the end. Raises ClaimLost, Interrupted."""
    with heart(comparing):
        try:
            found = compare_models(
                model=comparing.model,
                other=comparing.turn.against,
                data=of_snapshot(comparing.snapshot),
                by=None,
            )
        except DomainError as error:
            finish(comparing, JobState.FAILED, error=error.message)
            return
    said = found.report["against"]
    kept = {name: said[name] for name in ("difference", "interval", "n")}
    finish(comparing, JobState.SUCCEEDED, result=kept | {"evaluation": found.pk})
