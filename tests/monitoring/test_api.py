"""Alerts over the JSON API."""

import pytest

from apps.accounts.models import AuditEvent, Project, Scope
from apps.monitoring.models import Alert
from apps.rewards.models import Endpoint
from tests.api_calls import ApiCaller

NUMBERS = {"value": 0.5, "baseline": 0.1, "limit": 0.3, "margin": 0.05, "count": 200}


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    return Endpoint.objects.create(project=project, name="reward")


def raised(endpoint: Endpoint, rule: str) -> Alert:
    return Alert.objects.create(
        endpoint=endpoint, version=1, run="grpo-1", rule=rule, measure="uncertain", detail=rule, **NUMBERS
    )


def test_alerts_are_listed_and_closed(project: Project, endpoint: Endpoint, outsider: object) -> None:
    other = Endpoint.objects.create(project=project, name="other")
    alerts = [raised(endpoint, "one"), raised(other, "two"), raised(endpoint, "three")]
    elsewhere = Endpoint.objects.create(project=Project.objects.get(slug="elsewhere"), name="reward")
    foreign = raised(elsewhere, "theirs")
    call = ApiCaller(project)
    rows = call.all_pages("/alerts", 2)
    assert [row["id"] for row in rows] == [alert.pk for alert in reversed(alerts)]
    assert rows[0] | NUMBERS == rows[0] and rows[0]["open"] and rows[0]["closed"] is None
    assert call("GET", f"/alerts/{alerts[2].pk}") == rows[0]
    assert [row["rule"] for row in call("GET", "/alerts", endpoint="other")["items"]] == ["two"]
    closed = call("POST", f"/alerts/{alerts[1].pk}/close", {"note": "Expected: new data."})
    assert not closed["open"] and closed["note"] == "Expected: new data."
    assert [row["id"] for row in call("GET", "/alerts", state="closed")["items"]] == [alerts[1].pk]
    assert len(call("GET", "/alerts", state="open")["items"]) == 2
    call("POST", f"/alerts/{alerts[1].pk}/close")
    assert call.status == 409
    call("POST", f"/alerts/{foreign.pk}/close")
    assert call.status == 404
    assert AuditEvent.objects.get(verb="alert.closed").actor.startswith("tsk_")
    call("GET", "/alerts", state="new")
    assert call.status == 422


def test_a_trainers_key_reads_alerts_and_closes_none(project: Project, endpoint: Endpoint) -> None:
    alert, call = raised(endpoint, "one"), ApiCaller(project, Scope.REWARD)
    assert call("GET", f"/alerts/{alert.pk}")["rule"] == "one"
    refused = call("POST", f"/alerts/{alert.pk}/close")
    assert call.status == 403 and "the call needs admin" in refused["detail"]
