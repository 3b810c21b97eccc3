"""Roll-outs that a verifier has judged become comparisons (Cooper, arXiv 2508.05613, section 3: pairs from what rules
say, where rules are precise, for the reward model that is trained beside the policy).

Within a prompt each answer the verifier calls right is compared with one that it calls wrong.
"""

from collections.abc import Iterable, Iterator
from itertools import cycle

from django.db import transaction

from apps.accounts.models import User
from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.services import import_numbered
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.annotation.models import VERIFIER_PREFIX
from apps.core.errors import Conflict
from apps.monitoring.asking import LOOKED_AT, by_prompt
from apps.monitoring.models import Monitor
from apps.monitoring.selectors import scale_of
from apps.rewards.models import Endpoint, ScoreSample

RIGHT_FROM = 0.5  # of what the verifier says: right is this or more
MOST_OF_A_PROMPT = 4


@transaction.atomic
def learn_from_verifier(*, endpoint: Endpoint, by: User | None) -> int:
    """How many comparisons were new. Raises Conflict where there are none."""
    samples = list(endpoint.samples.order_by("-at", "-pk")[:LOOKED_AT])
    found = list(_comparisons(endpoint, samples))
    result = import_numbered(
        project=endpoint.project,
        numbered=enumerate(found, 1),
        campaign=f"Verified: {endpoint.name}",
        by=by,
    )
    if not result.created:
        raise Conflict(
            "There is nothing new to learn from the verifier: no prompt has an answer that it calls right and one that "
            "it calls wrong, beside those that were compared already."
        )
    if samples:
        Monitor.objects.filter(endpoint=endpoint).update(learnt_to=max(one.pk for one in samples))
    return result.created


def verified_since(monitor: Monitor) -> int:
    """Samples with a verifier's word that nothing was learnt from yet."""
    new = monitor.endpoint.samples.filter(pk__gt=monitor.learnt_to)[:LOOKED_AT]
    return sum(gold is not None for _, gold in _with_gold(monitor.endpoint, new))


def _comparisons(endpoint: Endpoint, samples: Iterable[ScoreSample]) -> Iterator[Incoming]:
    gold = {sample.pk: value for sample, value in _with_gold(endpoint, samples) if value is not None}
    known = [sample for sample in samples if sample.pk in gold]
    for group in by_prompt(endpoint.project, known).values():
        right = [one for one in group if gold[one.pk] >= RIGHT_FROM]
        wrong = [one for one in group if gold[one.pk] < RIGHT_FROM]
        pairs = (
            zip(right, cycle(wrong), strict=False)
            if len(right) >= len(wrong)
            else zip(cycle(right), wrong, strict=False)
        )
        for count, (good, bad) in enumerate(pairs if right and wrong else ()):
            if count == MOST_OF_A_PROMPT:
                break
            yield Incoming(
                kind="pairwise",
                places=(good.trajectory, bad.trajectory),
                value=PreferenceValue(choice="a", strength=2),
                task=good.trajectory.task,
                annotator=f"{VERIFIER_PREFIX}{endpoint.name}",
                origin="judge",
            )


def _with_gold(
    endpoint: Endpoint, samples: Iterable[ScoreSample]
) -> Iterator[tuple[ScoreSample, float | None]]:
    scales = {}
    for sample in samples:
        if sample.version not in scales:
            scales[sample.version] = scale_of(endpoint, sample.version)
        yield sample, scales[sample.version].row(sample).gold
