"""What annotators said about sampled trajectories, as measures count it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from apps.accounts.models import Project
from apps.annotation.feedback.records import current_annotations
from apps.annotation.models import Preference
from apps.annotation.selectors import item_trajectory_ids
from apps.monitoring.measures import SampleRow
from apps.rewards.models import Endpoint


def count_judgements(endpoint: Endpoint, rows: Sequence[SampleRow]) -> list[SampleRow]:
    """The rows with the follow-up comparisons that they are in; ties do not count."""
    rewards = {row.pk: row.reward for row in rows}
    positions = {row.pk: index for index, row in enumerate(rows)}
    judged, wrong = Counter[int](), Counter[int]()
    for follow_up in endpoint.follow_ups.exclude(samples={}):
        sample_by_trajectory = {
            int(trajectory): sample for trajectory, sample in follow_up.samples.items() if sample in rewards
        }
        if not sample_by_trajectory:
            continue
        sides = item_trajectory_ids(follow_up.items)
        for item, choice in _strict_preferences(endpoint.project, follow_up.items):
            a, b = (sample_by_trajectory.get(trajectory) for trajectory in sides[item])
            if a is None or b is None or rewards[a] == rewards[b]:
                continue
            newer = max(a, b, key=lambda sample: positions[sample])
            judged[newer] += 1
            wrong[newer] += (rewards[a] > rewards[b]) != (choice == "a")
    return [replace(row, judged=judged[row.pk], wrong=wrong[row.pk]) for row in rows]


def _strict_preferences(project: Project, items: Sequence[int]) -> Iterable[tuple[int, str]]:
    """Of what counts: (item, the side that is better overall)."""
    submissions = current_annotations(project, {}).filter(assignment__item__in=items).order_by()
    strict = Preference.objects.filter(annotation__in=submissions, criterion=None, choice__in=["a", "b"])
    return strict.values_list("annotation__assignment__item_id", "choice")
