"""Judges and their runs over the JSON API, with a server that answers by rules."""

import pytest

from apps.accounts.models import AuditEvent, Project
from apps.judges.models import Judge, JudgeRun
from apps.llm.models import LLMConnection
from tests.api_calls import ApiCaller
from tests.judges import parcels
from tests.judges.parcels import SCORED, done

BODY = {"name": "By / rules", "mode": "score", "llm_connection": "rules", "rubric": "Support"}


@pytest.mark.django_db(transaction=True)
def test_a_judge_runs_over_a_campaign(rules: LLMConnection) -> None:
    call = ApiCaller(rules.project)
    rubric = parcels.rubric(rules.project)
    judge = call("POST", "/judges", BODY | {"rubric": rubric.name})
    assert call.status == 201 and judge["rubric"] == str(rubric) and judge["llm_connection"] == "rules"
    path = "/judges/By%20%2F%20rules"
    assert call("GET", path) == judge and call("GET", "/judges")["items"] == [judge]
    started = call("POST", f"{path}/runs", {"campaign": SCORED, "max_items": 4})
    assert call.status == 202 and started["state"] == "queued" and started["progress"]["total"] == 4
    done(JudgeRun.objects.get(pk=started["run"]))
    found = call("GET", f"/judge-runs/{started['run']}")
    assert (found["state"], found["answered"], found["failed"]) == ("succeeded", 4, 0)
    (agreement,) = found.pop("agreement")
    assert agreement["n"] == 4 and agreement["trust"] == "too few to tell"
    assert call("GET", f"{path}/runs")["items"] == [found] == call("GET", "/judge-runs")["items"]
    call("DELETE", path)
    assert call.status == 204 and not JudgeRun.objects.exists()


@pytest.fixture
def connection(project: Project) -> LLMConnection:
    return LLMConnection.objects.create(
        project=project, name="rules", base_url="http://127.0.0.1:9/v1", model="m"
    )


def test_what_is_wrong_is_named(project: Project, connection: LLMConnection) -> None:
    call = ApiCaller(project)
    for change, status, pointer in (
        ({"rubric": None}, 400, "/rubric"),
        ({"rubric": "none"}, 404, "/rubric"),
        ({"llm_connection": "none"}, 404, None),
        ({"samples": 17}, 422, "/samples"),
        ({"prompt": 3}, 422, "/prompt"),
        ({"mode": "guess"}, 422, "/mode"),
        ({"temperature": 1}, 422, "/temperature"),
    ):
        refused = call("POST", "/judges", BODY | {"mode": "score", "rubric": None} | change)
        assert (call.status, refused.get("pointer")) == (status, pointer), change
    assert not Judge.objects.exists()


def test_the_trail_names_the_key(project: Project, connection: LLMConnection) -> None:
    call = ApiCaller(project)
    call("POST", "/judges", {"name": "two", "mode": "compare", "llm_connection": "rules"})
    assert Judge.objects.get().created_by is None
    assert AuditEvent.objects.get(verb="judge.added").actor.startswith("tsk_")
    call("POST", "/judges/two/runs", {"campaign": "none"})
    assert call.status == 404
