"""Comparisons from the verifier of an endpoint, and when a retraining cycle starts from them.

Within a prompt, each answer that the verifier accepts is compared with one that it rejects (Cooper, arXiv 2508.05613,
section 3: pairs from precise rules, for the reward model that is trained alongside the policy).
"""

import itertools
from collections.abc import Iterable, Iterator

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.annotation.feedback.incoming import Incoming
from apps.annotation.feedback.services import import_numbered
from apps.annotation.feedback_types.pairwise import PreferenceValue
from apps.annotation.models import VERIFIER_PREFIX
from apps.core.errors import Conflict
from apps.monitoring.models import Monitor
from apps.monitoring.selectors import sample_scale
from apps.retraining.follow_up import MAX_SAMPLES, group_by_prompt
from apps.rewards.models import Endpoint, ScoreSample

ACCEPTED_FROM = 0.5  # the verifier accepts an answer with this reward or more
MAX_PAIRS_PER_PROMPT = 4


@transaction.atomic
def set_online_learning(*, endpoint: Endpoint, every: int, by: User) -> None:
    """Start a retraining cycle automatically after `every` verified samples; 0 never."""
    monitor, _ = Monitor.objects.get_or_create(endpoint=endpoint)
    if monitor.retrain_after != every:
        monitor.retrain_after = every
        monitor.save(update_fields=["retrain_after"])
        record_audit(
            project=endpoint.project,
            actor=by,
            verb="monitor.learns",
            target=endpoint.name,
            data={"every": every},
        )


@transaction.atomic
def import_verified_comparisons(*, endpoint: Endpoint, by: User | None) -> int:
    """How many comparisons were new. Raises Conflict where there are none."""
    samples = list(endpoint.samples.order_by("-at", "-pk")[:MAX_SAMPLES])
    comparisons = list(_verified_comparisons(endpoint, samples))
    result = import_numbered(
        project=endpoint.project,
        numbered=enumerate(comparisons, 1),
        campaign=f"Verified: {endpoint.name}",
        by=by,
    )
    if not result.created:
        raise Conflict(
            "There are no new comparisons from the verifier: no prompt has both an answer that it accepts and one that "
            "it rejects, other than those that were compared already."
        )
    if samples:
        Monitor.objects.filter(endpoint=endpoint).update(
            last_learned_sample=max(sample.pk for sample in samples)
        )
    return result.created


def count_new_verified(monitor: Monitor) -> int:
    """Samples with a verifier's reward that no comparisons were made from yet."""
    new = monitor.endpoint.samples.filter(pk__gt=monitor.last_learned_sample)[:MAX_SAMPLES]
    return sum(gold is not None for _, gold in _with_gold(monitor.endpoint, new))


def _verified_comparisons(endpoint: Endpoint, samples: Iterable[ScoreSample]) -> Iterator[Incoming]:
    gold = {sample.pk: value for sample, value in _with_gold(endpoint, samples) if value is not None}
    known = [sample for sample in samples if sample.pk in gold]
    for group in group_by_prompt(endpoint.project, known).values():
        accepted = [sample for sample in group if gold[sample.pk] >= ACCEPTED_FROM]
        rejected = [sample for sample in group if gold[sample.pk] < ACCEPTED_FROM]
        pairs = (
            zip(accepted, itertools.cycle(rejected), strict=False)
            if len(accepted) >= len(rejected)
            else zip(itertools.cycle(accepted), rejected, strict=False)
        )
        for count, (chosen, other) in enumerate(pairs if accepted and rejected else ()):
            if count == MAX_PAIRS_PER_PROMPT:
                break
            yield Incoming(
                kind="pairwise",
                places=(chosen.trajectory, other.trajectory),
                value=PreferenceValue(choice="a", strength=2),
                task=chosen.trajectory.task,
                annotator=f"{VERIFIER_PREFIX}{endpoint.name}",
                origin="judge",
            )


def _with_gold(
    endpoint: Endpoint, samples: Iterable[ScoreSample]
) -> Iterator[tuple[ScoreSample, float | None]]:
    scales = {}
    for sample in samples:
        if sample.version not in scales:
            scales[sample.version] = sample_scale(endpoint, sample.version)
        yield sample, scales[sample.version].row(sample).gold
