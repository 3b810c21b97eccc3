"""Storing usage, samples and compared pairs. Replicas call it again after a failure: nothing is counted twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from apps.rewards.guard_log import LoggedDecision
from apps.rewards.models import (
    Endpoint,
    GuardDecision,
    PolicyRunVersion,
    Release,
    ReleaseRollup,
    ScoreFlagCount,
    ScoreReceipt,
    ScoreRollup,
    ScoreSample,
)
from apps.rewards.pair_statistics import COUNTS, PairStatistics, ScorePair, group_pairs
from apps.rewards.redaction import NO_REDACTION, Redaction
from apps.rewards.usage import (
    SUMS,
    FlagGroup,
    UsageEvent,
    UsageGroup,
    UsageTally,
    group_flags,
    group_usage,
)
from workers.schema import ScoreInput, Trajectory, item_json

RECEIPTS_KEPT = timedelta(hours=1)
RUN_VERSIONS_KEPT = timedelta(days=90)
_HISTOGRAMS = ("latency", "rewards")
_KEYS = ("endpoint_id", "hour", "version", "caller", "run", "policy_version")


@dataclass(frozen=True, slots=True)
class SampledItem:
    """A sampled item with its result as JSON; what `redaction` matches is removed when it is stored."""

    group: UsageGroup
    item: ScoreInput
    result: Mapping[str, Any]
    redaction: Redaction = NO_REDACTION
    repetition: float = 0.0


@transaction.atomic
def write_usage(
    *,
    batch: UUID,
    events: Sequence[UsageEvent],
    samples: Sequence[SampledItem] = (),
    pairs: Sequence[ScorePair] = (),
) -> bool:
    """Add a batch to the rollups, once however often it is called; whether it was now. Repeated requests, by any
    replica, count as such. What belongs to a deleted endpoint is dropped."""
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
    repeated += [place for place in within if events[place].status < 400]
    tallies = group_usage(events, repeated)
    asked = {group.endpoint for group in tallies} | {sample.group.endpoint for sample in samples}
    there = set(Endpoint.objects.filter(pk__in=asked).values_list("pk", flat=True))
    # In one order, so that two replicas never wait for each other.
    for group in sorted(tallies, key=str):
        if group.endpoint in there:
            _add(group, tallies[group])
    flags = group_flags(events, repeated)
    _add_flags({group: items for group, items in flags.items() if group.endpoint in there})
    ScoreSample.objects.bulk_create(
        _score_sample(sampled) for sampled in samples if sampled.group.endpoint in there
    )
    counted_before = set(repeated)
    GuardDecision.objects.bulk_create(
        _guard_decision(event, logged)
        for place, event in enumerate(events)
        if place not in counted_before and event.group.endpoint in there
        for logged in event.decisions
    )
    _add_pairs(group_pairs(pairs))
    return True


def store_run_version(*, endpoint: int, run: str, version: int) -> int | None:
    """The version that scored the run before, where it was another: to one of those who store the same, else None."""
    table = PolicyRunVersion._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH before AS (SELECT version FROM {table} WHERE endpoint_id = %s AND run = %s) "  # noqa: S608
            f"INSERT INTO {table} AS row (endpoint_id, run, version, at) "
            f"SELECT id, %s, %s, now() FROM {Endpoint._meta.db_table} WHERE id = %s "
            "ON CONFLICT (endpoint_id, run) DO UPDATE SET version = excluded.version, at = excluded.at "
            "WHERE row.version <> excluded.version RETURNING (SELECT version FROM before)",
            [endpoint, run, run, version, endpoint],
        )
        found = cursor.fetchone()
    return None if found is None else found[0]


def delete_expired() -> None:
    """Delete receipts, samples, decisions and versions of policy runs that are past their retention."""
    now = timezone.now()
    PolicyRunVersion.objects.filter(at__lt=now - RUN_VERSIONS_KEPT).delete()
    ScoreReceipt.objects.filter(at__lt=now - RECEIPTS_KEPT).delete()
    ScoreSample.objects.filter(
        endpoint__sample_share=0
    ).delete()  # stored while sampling was being turned off
    for pk, days in Endpoint.objects.values_list("pk", "guard_days"):
        GuardDecision.objects.filter(endpoint=pk, at__lt=now - timedelta(days=days)).delete()
    for endpoint in Endpoint.objects.filter(sample_share__gt=0):
        endpoint.samples.filter(at__lt=now - timedelta(days=endpoint.sample_days)).delete()
        old = endpoint.samples.order_by("-at", "-pk").values_list("pk", flat=True)[endpoint.sample_most :]
        ScoreSample.objects.filter(pk__in=list(old)).delete()


def _receipts(ids: Sequence[UUID]) -> set[UUID]:
    """Insert them; returns those that are new."""
    if not ids:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {ScoreReceipt._meta.db_table} (id, at) SELECT unnest(%s::uuid[]), now() "
            "ON CONFLICT DO NOTHING RETURNING id",
            [sorted(ids)],
        )
        return {row[0] for row in cursor.fetchall()}


def _add(group: UsageGroup, tally: UsageTally) -> None:
    keys = (group.endpoint, group.hour, group.version, group.caller, group.run, group.policy_version)
    _upsert(ScoreRollup, dict(zip(_KEYS, keys, strict=True)), tally, SUMS, _HISTOGRAMS)


def _add_flags(found: Mapping[FlagGroup, int]) -> None:
    """In one statement, in one order."""
    if not found:
        return
    table = ScoreFlagCount._meta.db_table
    groups = sorted(found)
    columns: list[Any] = [
        [group.endpoint for group in groups],
        [group.hour for group in groups],
        [group.version for group in groups],
        [group.flag for group in groups],
        [found[group] for group in groups],
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (endpoint_id, hour, version, flag, items) "  # noqa: S608
            "SELECT * FROM unnest(%s::bigint[], %s::timestamptz[], %s::integer[], %s::text[], %s::bigint[]) "
            "ON CONFLICT (endpoint_id, hour, version, flag) "
            f"DO UPDATE SET items = {table}.items + excluded.items",
            columns,
        )


def _add_pairs(found: Mapping[tuple[int, str, str], PairStatistics]) -> None:
    there = set(Release.objects.filter(pk__in={key[0] for key in found}).values_list("pk", flat=True))
    for key in sorted(found):
        if key[0] in there:
            keys = dict(zip(("release_id", "stage", "policy_version"), key, strict=True))
            _upsert(ReleaseRollup, keys, found[key], COUNTS, ("moments",))


def _upsert(
    model: type[Model], keys: Mapping[str, Any], added: Any, sums: Sequence[str], arrays: Sequence[str]
) -> None:
    """Add the numbers and lists of numbers of `added` to the row of these keys, which is made if there is none."""
    table = model._meta.db_table
    columns = (*keys, *sums, *arrays)
    sets = [f"{name} = {table}.{name} + excluded.{name}" for name in sums]
    sets += [
        f"{name} = (SELECT array_agg(a + b ORDER BY place) "  # noqa: S608
        f"FROM unnest({table}.{name}, excluded.{name}) WITH ORDINALITY AS bins(a, b, place))"
        for name in arrays
    ]
    values = [*keys.values(), *(getattr(added, name) for name in (*sums, *arrays))]
    marks = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(sets)}",
            values,
        )


def _score_sample(sampled: SampledItem) -> ScoreSample:
    group, content = sampled.group, sampled.item.content
    return ScoreSample(
        endpoint_id=group.endpoint,
        version=group.version,
        caller=group.caller,
        run=group.run,
        policy_version=group.policy_version,
        item=sampled.redaction.apply(item_json(sampled.item)),
        result=dict(sampled.result),
        reward=sampled.result["reward"],
        tokens=sampled.result["tokens"],
        repetition=sampled.repetition,
        steps=len(content.agent_steps) if isinstance(content, Trajectory) else 1,
    )


def _guard_decision(event: UsageEvent, logged: LoggedDecision) -> GuardDecision:
    group = event.group
    return GuardDecision(
        endpoint_id=group.endpoint,
        version=group.version,
        caller=group.caller,
        run=group.run,
        policy_version=group.policy_version,
        decision=logged.result.decision,
        rule=logged.result.rule or "",
        reason=logged.reason,
        violations=logged.violations,
        reward=logged.reward,
        milliseconds=round(event.milliseconds, 2),
        prefix=logged.prefix,
        action=logged.action,
        is_sampled=logged.is_sampled,
        at=logged.at,
    )
