"""Metrics and inductions over the JSON API."""

import pytest

from apps.accounts.models import Project, Role
from apps.core.errors import Forbidden
from apps.metrics.models import Induction
from apps.metrics.selectors import induction_report
from apps.metrics.services import accept_metric, start_induction
from tests.api_calls import ApiCaller
from tests.factories import make_member


def test_an_induction_is_queued_once(commented: Project) -> None:
    call = ApiCaller(commented)
    queued = call("POST", "/inductions", {"seed": 3})
    assert call.status == 202 and (queued["state"], queued["engine"], queued["seed"]) == (
        "queued",
        "embedded",
        3,
    )
    assert queued["held_out"] is None and queued["warnings"] == []
    refused = call("POST", "/inductions", {})
    assert call.status == 400 and "still running" in refused["detail"]
    cancelled = call("POST", f"/inductions/{queued['induction']}/cancel")
    assert cancelled["state"] == "cancelled"
    assert call("GET", "/inductions", limit=1)["items"] == [cancelled]


def test_what_cannot_be_induced_is_told(project: Project) -> None:
    call = ApiCaller(project)
    assert "no comments yet" in call("POST", "/inductions", {})["detail"]
    assert call("POST", "/inductions", {"campaign": "none"})["pointer"] == "/campaign" and call.status == 404
    call("POST", "/inductions", {"llm_connection": "none"})
    assert call.status == 404
    assert call("POST", "/inductions", {"seed": -1})["pointer"] == "/seed"


def test_an_induction_has_its_metrics(induced: Induction) -> None:
    call = ApiCaller(induced.project)
    found = call("GET", f"/inductions/{induced.pk}")
    assert found["state"] == "succeeded"
    assert found["metrics"] == induction_report(induced)["metrics"]
    assert found["metrics"][0]["aspects"]
    call("GET", f"/inductions/{induced.pk + 1}")
    assert call.status == 404


def test_metrics_in_use_are_listed(induced: Induction) -> None:
    call = ApiCaller(induced.project)
    first, second = induced.metrics.all()
    with pytest.raises(Forbidden, match="Only a person may accept a metric"):
        accept_metric(metric=first, by=None)
    accept_metric(metric=first, by=make_member(induced.project, "a@example.org", Role.RESEARCHER))
    rows = call.all_pages("/metrics", 1)
    assert [(row["id"], row["state"], row["criterion"]) for row in rows] == [
        (second.pk, "proposed", None),
        (first.pk, "accepted", first.name),
    ]
    assert rows[0]["praised"] + rows[0]["blamed"] == second.aspects.count()
    assert rows[0]["judged"] == second.verdicts.count()
    # Lists in the order of a time, and those in the order of keys, do not take each other's cursors.
    call("GET", "/metrics", cursor=_cursor_of_inductions(call, induced))
    assert call.status == 400


def _cursor_of_inductions(call: ApiCaller, induced: Induction) -> str:
    start_induction(project=induced.project)
    cursor: str = call("GET", "/inductions", limit=1)["next"]
    return cursor
