"""Looking at what endpoints score, and saying what needs a person."""

import logging
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict
from apps.monitoring import extensions, measures
from apps.monitoring.mail import create_alert_emails
from apps.monitoring.measures import MEASURES, Reference, SampleRow, root_kl
from apps.monitoring.models import Alert, Monitor, Reading
from apps.monitoring.rules import Rule, describe_reading, parse_rules, readings, rules_as_json
from apps.monitoring.selectors import endpoint_rules, newest_samples, reference_for_version, sample_scale
from apps.rewards.models import Endpoint
from apps.webhooks import services as webhooks

logger = logging.getLogger(__name__)

READINGS_KEPT = timedelta(days=90)
MOST_RUNS = 100  # of an endpoint, looked at in one pass
BEHIND = 60  # trajectories that are shown with an alert, the newest look's


@transaction.atomic
def save_rules(*, endpoint: Endpoint, rules: Any, by: User) -> Monitor:
    """rules: decoded JSON; none: the default ones again. Raises InvalidRecord with the pointer of the bad field."""
    parsed = parse_rules(rules)
    monitor, _ = Monitor.objects.get_or_create(endpoint=endpoint)
    monitor.rules = rules_as_json(parsed)
    monitor.save(update_fields=["rules"])
    record_audit(
        project=endpoint.project,
        actor=by,
        verb="monitor.rules_saved",
        target=endpoint.name,
        data={"rules": monitor.rules},
    )
    return monitor


@transaction.atomic
def close_alert(*, alert: Alert, note: str, by: Actor) -> Alert:
    alert = Alert.objects.select_for_update(of=("self",)).select_related("endpoint__project").get(pk=alert.pk)
    if not alert.is_open:
        raise Conflict("The alert is closed already.")
    alert.closed_at, alert.closed_by, alert.note = timezone.now(), person_of(by), note.strip()
    alert.save(update_fields=["closed_at", "closed_by", "note"])
    endpoint = alert.endpoint
    record_audit(
        project=endpoint.project,
        actor=by,
        verb="alert.closed",
        target=endpoint.name,
        data={"rule": alert.rule},
    )
    return alert


def check_endpoints() -> None:
    """Measure what was sampled since the last look, of every endpoint that keeps samples."""
    endpoints = Endpoint.objects.filter(sample_share__gt=0, project__archived_at=None)
    for endpoint in endpoints.select_related("project", "monitor"):
        monitor = getattr(endpoint, "monitor", None) or Monitor.objects.get_or_create(endpoint=endpoint)[0]
        try:
            check_monitor(monitor)
        except Exception:  # one endpoint that cannot be read is no reason not to look at the others
            logger.exception("%s cannot be looked at", endpoint)


@transaction.atomic
def check_monitor(monitor: Monitor) -> list[Alert]:
    """The alerts that were raised now."""
    rows = Monitor.objects.select_for_update(of=("self",), skip_locked=True)
    locked = rows.select_related("endpoint__project").filter(pk=monitor.pk).first()
    if locked is None:
        return []  # someone looks already
    monitor, endpoint = locked, locked.endpoint
    new = endpoint.samples.filter(pk__gt=monitor.last_sample)
    last = new.order_by("-pk").values_list("pk", flat=True).first()
    if last is None:
        return []
    changed = new.filter(pk__lte=last).values_list("version", "run").distinct()[:MOST_RUNS]
    raised = [alert for version, run in sorted(changed) for alert in _look_at_run(monitor, version, run)]
    monitor.last_sample, monitor.checked_at = last, timezone.now()
    monitor.save(update_fields=["last_sample", "checked_at"])
    return raised


def delete_old_readings() -> None:
    Reading.objects.filter(at__lt=timezone.now() - READINGS_KEPT).delete()


def _look_at_run(monitor: Monitor, version: int, run: str) -> list[Alert]:
    endpoint = monitor.endpoint
    rules = endpoint_rules(endpoint)
    scale = sample_scale(endpoint, version)
    rows = extensions.enriched_rows(endpoint, scale.rows(newest_samples(endpoint, version, run)))
    fewest = min(rule.least for rule in rules) if rules else 1
    if len(rows) < fewest:
        return []
    reference = reference_for_version(endpoint, version, scale, least=fewest)
    if reference is None:
        return []
    found = readings(rules, rows, reference)
    if found:
        _write(monitor, version, run, rows, found)
    raised = []
    for rule in rules:
        reading = found.get(rule.name)
        if reading is not None and MEASURES[rule.measure].passes(reading, rule.above):
            alert = _raise(endpoint, version, run, rule, reading, rows, reference)
            if alert is not None:
                raised.append(alert)
    return raised


def _write(
    monitor: Monitor,
    version: int,
    run: str,
    rows: Sequence[SampleRow],
    found: dict[str, measures.MeasureReading],
) -> None:
    rules = {rule.name: rule for rule in endpoint_rules(monitor.endpoint)}
    widest = max(rules[name].window for name in found)
    window = rows[-widest:]
    gold = [row.gold for row in window if row.gold is not None]
    Reading.objects.create(
        monitor=monitor,
        version=version,
        run=run,
        policy_version=window[-1].policy_version,
        values={rules[name].measure: asdict(reading) for name, reading in found.items()},
        count=len(window),
        reward=statistics.fmean(row.reward for row in window),
        root_kl=root_kl(window),
        gold=statistics.fmean(gold) if gold else None,
    )


def _raise(
    endpoint: Endpoint,
    version: int,
    run: str,
    rule: Rule,
    reading: measures.MeasureReading,
    rows: Sequence[SampleRow],
    reference: Reference,
) -> Alert | None:
    """The alert, where there was none of this rule; an open one is brought up to date."""
    window = rows[-rule.window :]
    policy = window[-1].policy_version
    said = {
        "policy_version": policy,
        "measure": rule.measure,
        "value": reading.value,
        "baseline": reading.baseline,
        "limit": rule.above,
        "margin": reading.margin,
        "count": reading.count,
        "detail": describe_reading(rule, reading, of=reference.of, run=run, policy_version=policy),
        "seen_at": timezone.now(),
    }
    alert, is_new = Alert.objects.get_or_create(
        endpoint=endpoint, version=version, run=run, rule=rule.name, defaults=said
    )
    if not alert.is_open:
        return None
    behind = sorted(window, key=MEASURES[rule.measure].rows, reverse=True)[:BEHIND]
    alert.samples.set([row.pk for row in behind])
    if not is_new:
        Alert.objects.filter(pk=alert.pk).update(**said)
        return None
    create_alert_emails(alert)
    webhooks.alert(
        endpoint.project,
        name="reward.suspected",
        detail=alert.detail,
        path=reverse("monitoring:alert-detail", args=[endpoint.project.slug, alert.pk]),
        endpoint=endpoint.name,
        version=version,
        run=run,
        policy_version=policy,
        rule=rule.name,
        measure=rule.measure,
        value=reading.value,
        baseline=reading.baseline,
        limit=rule.above,
    )
    extensions.act_on_alert(alert, rule)
    return alert
