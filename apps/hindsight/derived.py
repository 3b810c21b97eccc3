"""Demonstrations for dataset versions: trajectories under the task that they fulfilled, as a person accepted it."""

from collections.abc import Iterator

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.datasets.derived_records import DerivedSource
from apps.hindsight.models import HindsightTask
from apps.trajectories.selectors import load_trajectories
from workers.hindsight.relabelled import relabelled
from workers.schema import DemonstrationRecord

ANNOTATOR = "hindsight"
_CHUNK = 200


def relabelled_demonstrations(project: Project) -> Iterator[DemonstrationRecord]:
    """In the order of their tasks. Raises DomainError where no hindsight task is accepted."""
    rows = HindsightTask.objects.filter(project=project).exclude(accepted_text="")
    rows = rows.order_by("trajectory__task", "trajectory")
    accepted = list(rows.values_list("trajectory", "accepted_text"))
    if not accepted:
        raise DomainError(
            "No hindsight task is accepted yet. Propose some under Trajectories > Hindsight tasks, accept those that "
            "fit, then freeze again."
        )
    for start in range(0, len(accepted), _CHUNK):
        chunk = accepted[start : start + _CHUNK]
        found = load_trajectories({key for key, _ in chunk})
        for key, text in chunk:
            if key in found:
                yield DemonstrationRecord(
                    trajectory=relabelled(found[key], text),
                    demonstration=True,
                    annotator=ANNOTATOR,
                    origin="judge",
                    item=f"hindsight {key}",
                )


SOURCE = DerivedSource(
    "hindsight_tasks",
    "trajectories as demonstrations of their accepted hindsight tasks (in training and validation only)",
    relabelled_demonstrations,
    in_test=False,
)
