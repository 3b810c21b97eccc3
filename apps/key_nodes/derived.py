"""Completion rates as scores in dataset versions: rows for a model of outcomes."""

from collections.abc import Iterator

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.datasets.derived_records import DerivedSource
from apps.key_nodes.models import KeyNodeCompletion, TaskKeyNodes
from apps.key_nodes.selectors import stale_trajectories
from apps.trajectories.selectors import load_trajectories
from workers.schema import ScoreRecord

CRITERION = "Key nodes"
ANNOTATOR = "key nodes"
DEFINITION = "The share of the task's key nodes that the trajectory reaches."
_CHUNK = 200


def completion_scores(project: Project) -> Iterator[ScoreRecord]:
    """One score from 0 to 1 of each trajectory, in the order of their tasks. Raises DomainError where no task with
    trajectories has key nodes."""
    from apps.key_nodes.services import refresh_completions

    refresh_completions(stale_trajectories(project))
    rows = KeyNodeCompletion.objects.filter(key_nodes__in=TaskKeyNodes.objects.filter(project=project))
    shares = list(rows.order_by("trajectory__task", "trajectory").values_list("trajectory", "share", "steps"))
    if not shares:
        raise DomainError(
            "No task with trajectories has key nodes yet. Mark some on the page of a trajectory, then freeze again."
        )
    for start in range(0, len(shares), _CHUNK):
        chunk = shares[start : start + _CHUNK]
        found = load_trajectories([key for key, _, _ in chunk])
        for key, share, steps in chunk:
            if key in found:
                reached = sum(step is not None for step in steps)
                yield ScoreRecord(
                    annotator=ANNOTATOR,
                    origin="judge",
                    trajectory=found[key],
                    criterion=CRITERION,
                    value=share,
                    scale=(0.0, 1.0),
                    definition=DEFINITION,
                    note=f"{reached} of {len(steps)} key nodes reached",
                    criterion_weight=1.0,
                )


SOURCE = DerivedSource(
    "key_nodes",
    "completion rates of the key nodes of tasks, as scores from 0 to 1",
    completion_scores,
    in_test=True,
)
