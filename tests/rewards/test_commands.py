"""deploy, rollback, switch_off, switch_on, score: what they print, and that the running service follows."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from apps.accounts.models import AuditEvent
from apps.rewards.models import Endpoint
from tests.rewards.conftest import make_model
from tests.workers.engine.fakes import FakeModel


@pytest.fixture
def address(service, settings) -> None:
    settings.REWARDS_ADDRESS = service.url


def run(*arguments: str, **options: Any) -> tuple[dict, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command(*arguments, "--json", stdout=out, stderr=err, **options)
    return json.loads(out.getvalue()), err.getvalue()


def test_deploy_waits_until_the_service_answers_with_it(service, project, key, http, address) -> None:
    make_model(project, service, FakeModel())
    printed, notes = run("deploy", "desk/politeness", "fresh")
    assert printed == {"endpoint": "fresh", "revision": 1, "model": "desk/politeness@1", "served": True}
    assert "answers with fresh@1" in notes
    make_model(project, service, FakeModel(factor=2.0))
    assert run("deploy", "desk/politeness", "fresh")[0]["model"] == "desk/politeness@2"
    assert http.get("/api/v1/rewards/fresh/").json()["version"] == 2
    assert run("rollback", "fresh")[0] == {
        "endpoint": "fresh",
        "revision": 1,
        "model": "desk/politeness@1",
        "served": True,
    }
    assert list(AuditEvent.objects.filter(target="fresh").order_by("pk").values_list("verb", flat=True)) == [
        "endpoint.created",
        "endpoint.deployed",
        "endpoint.deployed",
        "endpoint.rolled_back",
    ]


def test_deploy_says_when_the_revision_cannot_be_served(service, project, address) -> None:
    make_model(project, service)
    printed, notes = run("deploy", "desk/politeness@1", "fresh")
    assert printed["served"] is False
    assert "fresh@1 cannot be served" in notes.lower()


def test_deploy_says_when_the_service_does_not_run(project, service, settings) -> None:
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    make_model(project, service, FakeModel())
    printed, notes = run("deploy", "desk/politeness@1", "fresh")
    assert printed["served"] is False
    assert "The reward service cannot be reached" in notes


def test_deploy_without_waiting(project, service, settings) -> None:
    settings.REWARDS_ADDRESS = "http://127.0.0.1:9"
    make_model(project, service, FakeModel())
    assert set(run("deploy", "desk/politeness@1", "fresh", "--no-wait")[0]) == {
        "endpoint",
        "revision",
        "model",
    }


def test_switching_off_and_on(endpoint, address) -> None:
    printed, _ = run("switch_off", endpoint, "--reason", "looks hacked")
    assert printed == {"endpoint": endpoint, "switched_off": True, "reason": "looks hacked"}
    assert Endpoint.objects.get(name=endpoint).switched_off
    assert run("switch_on", endpoint)[0] == {"endpoint": endpoint, "switched_off": False}


def test_score_lines(endpoint, address, tmp_path) -> None:
    items = [{"text": chr(97 + n % 26) * (n // 26 + 1)} for n in range(100)]
    file = tmp_path / "items.jsonl"
    file.write_text("\n".join(map(json.dumps, items)) + "\n\n")
    out = io.StringIO()
    call_command("score", endpoint, str(file), stdout=out, stderr=io.StringIO())
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(lines) == 100
    assert lines[99]["raw"] == pytest.approx(0.25 + 4 * ord("v") / 1000)
    printed, _ = run("score", endpoint, str(file))
    assert [result["reward"] for result in printed["results"]] == [line["reward"] for line in lines]
    assert printed["version"] == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('{"text": 3}', "Line 71: .*text"),
        ("{", "Line 71: not valid JSON"),
        ('{"text": "nan"}', "Line 71: .*finite"),
    ],
)
def test_score_names_the_bad_line(endpoint, address, tmp_path, bad, message) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text('{"text": "a"}\n' * 70 + bad)
    with pytest.raises(CommandError, match=message):
        call_command("score", endpoint, str(file), stdout=io.StringIO(), stderr=io.StringIO())


def test_what_is_not_there(db) -> None:
    with pytest.raises(CommandError, match="no endpoint 'nothing'"):
        run("score", "nothing", "file")
    with pytest.raises(CommandError, match="no model desk/nothing"):
        run("deploy", "desk/nothing", "fresh")
