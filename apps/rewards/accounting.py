"""Writing down what was asked. Called by every replica, again after a failure: nothing is counted twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from apps.rewards.models import Endpoint, ScoreReceipt, ScoreRollup, ScoreSample
from apps.rewards.usage import SUMS, Event, Group, Tally, tallied

RECEIPTS_KEPT = timedelta(hours=1)
SAMPLES_KEPT = 200  # of an endpoint
SAMPLES_KEPT_FOR = timedelta(days=30)
_HISTOGRAMS = ("latency", "rewards")
_KEYS = ("endpoint_id", "hour", "version", "caller", "run", "policy_version")


@dataclass(frozen=True, slots=True)
class Sample:
    """A request to be kept. item, result: JSON."""

    group: Group
    item: Mapping[str, Any]
    result: Mapping[str, Any]


@transaction.atomic
def write_usage(*, batch: UUID, events: Sequence[Event], samples: Sequence[Sample] = ()) -> bool:
    """Add a batch to the rollups, once however often it is called; whether it was now. Repeated requests, by any
    replica, count as such. What is about an endpoint that is gone is dropped."""
    if not _receipts([batch]):
        return False
    named = {
        event.receipt: place for place, event in enumerate(events) if event.receipt and event.status < 400
    }
    within = [
        place
        for place, event in enumerate(events)
        if event.receipt in named and named[event.receipt] != place
    ]
    new = _receipts([receipt for receipt in named if receipt is not None])
    repeated = [place for receipt, place in named.items() if receipt not in new]
    tallies = tallied(events, [*repeated, *(place for place in within if events[place].status < 400)])
    asked = {group.endpoint for group in tallies} | {sample.group.endpoint for sample in samples}
    there = set(Endpoint.objects.filter(pk__in=asked).values_list("pk", flat=True))
    # In one order, so that two replicas never wait for each other.
    for group in sorted(tallies, key=str):
        if group.endpoint in there:
            _add(group, tallies[group])
    ScoreSample.objects.bulk_create(_sample(one) for one in samples if one.group.endpoint in there)
    return True


def forget_old() -> None:
    """Receipts and samples that have had their time."""
    now = timezone.now()
    ScoreReceipt.objects.filter(at__lt=now - RECEIPTS_KEPT).delete()
    ScoreSample.objects.filter(at__lt=now - SAMPLES_KEPT_FOR).delete()
    for endpoint in Endpoint.objects.filter(keeps_samples=True):
        old = endpoint.samples.order_by("-at").values_list("pk", flat=True)[SAMPLES_KEPT:]
        ScoreSample.objects.filter(pk__in=list(old)).delete()


def _receipts(ids: Sequence[UUID]) -> set[UUID]:
    """Those that were not there."""
    if not ids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {ScoreReceipt._meta.db_table} (id, at) SELECT unnest(%s::uuid[]), now() "
            "ON CONFLICT DO NOTHING RETURNING id",
            [sorted(ids)],
        )
        return {row[0] for row in cursor.fetchall()}


def _add(group: Group, tally: Tally) -> None:
    table = ScoreRollup._meta.db_table
    columns = (*_KEYS, *SUMS, *_HISTOGRAMS)
    sums = [f"{name} = {table}.{name} + excluded.{name}" for name in SUMS]
    sums += [
        f"{name} = (SELECT array_agg(a + b ORDER BY place) "  # noqa: S608
        f"FROM unnest({table}.{name}, excluded.{name}) WITH ORDINALITY AS bins(a, b, place))"
        for name in _HISTOGRAMS
    ]
    values: list[Any] = [
        group.endpoint,
        group.hour,
        group.version,
        group.caller,
        group.run,
        group.policy_version,
    ]
    values += [getattr(tally, name) for name in (*SUMS, *_HISTOGRAMS)]
    marks = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(_KEYS)}) DO UPDATE SET {', '.join(sums)}",
            values,
        )


def _sample(one: Sample) -> ScoreSample:
    group = one.group
    return ScoreSample(
        endpoint_id=group.endpoint,
        version=group.version,
        caller=group.caller,
        run=group.run,
        policy_version=group.policy_version,
        item=one.item,
        result=one.result,
    )
