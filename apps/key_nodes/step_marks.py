"""Key nodes at the steps that reach them, with the observation that was expected there."""

from collections import defaultdict

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from apps.key_nodes.observations import compare_observations
from apps.key_nodes.selectors import NodeRow, stored_rows
from apps.trajectories.models import Trajectory


def key_node_marks(trajectory: Trajectory) -> dict[int, SafeString]:
    own, rows = stored_rows(trajectory)
    if own is None:
        return {}
    by_step: dict[int, list[NodeRow]] = defaultdict(list)
    for row in rows:
        if row.step is not None:
            by_step[row.step].append(row)
    return {
        step: render_to_string(
            "key_nodes/_step_marks.html",
            {"marks": [(row, compare_observations(row)) for row in found], "own": own},
        )
        for step, found in by_step.items()
    }
