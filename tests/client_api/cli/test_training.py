"""freeze, train, logs, deploy and lists against a running server, with a worker."""

import json
import zipfile
from pathlib import Path

import pytest
from touchstone_client import Client

from apps.accounts.models import Project
from apps.rewards.models import Endpoint
from tests.client.cli.conftest import Touchstone
from tests.client_api.conftest import comparison

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("signed_in")]


@pytest.fixture
def frozen(client: Client, workers: None, touchstone: Touchstone) -> None:
    client.feedback.add([comparison(number) for number in range(4)])
    found = touchstone("freeze", "answers", "--kind", "pairwise", "--seed", 1, "--wait", "--json")
    assert (found.json["name"], found.json["state"]) == ("desk/answers@1", "succeeded")


def test_from_feedback_to_an_endpoint(frozen: None, touchstone: Touchstone, tmp_path: Path) -> None:
    assert "desk/answers@1" in touchstone("datasets").out
    rows = touchstone("export", "dataset", "answers", "--format", "trl").out.splitlines()
    assert rows and "chosen" in json.loads(rows[0])
    assert len(touchstone("export", "dataset", "answers", "--limit", 2).out.splitlines()) == 2
    packed = touchstone(
        "export", "dataset", "answers", "--format", "parquet", "--out", tmp_path / "a.zip", "--json"
    )
    assert packed.json["bytes"] == (tmp_path / "a.zip").stat().st_size and zipfile.is_zipfile(
        tmp_path / "a.zip"
    )
    recipe = tmp_path / "mine.toml"
    recipe.write_text('objective = "bradley_terry"\nlabel_smoothing = 0.0\n')
    trained = touchstone(
        "train", "--dataset", "answers", "--recipe", recipe, "--name", "polite", "--wait", "--json"
    )
    assert (trained.json["state"], trained.json["model"]) == ("succeeded", "desk/polite@1")
    run = trained.json["run"]

    shown = touchstone("logs", run)
    assert (
        shown.status == 0 and "  step 3  loss 0.3333" in shown.out and "validation.accuracy 0.8" in shown.out
    )
    assert f"Run {run} succeeded, model desk/polite@1" in shown.err and "progress" not in shown.out
    assert "three steps done" in touchstone("logs", run, "--output").out
    logged = touchstone("logs", run, "--json").json
    assert [event["data"]["step"] for event in logged["events"]] == [1, 2, 3]
    followed = [json.loads(line) for line in touchstone("logs", run, "--follow", "--json").out.splitlines()]
    assert [line["data"]["step"] for line in followed[:3]] == [1, 2, 3]
    assert followed[3]["model"] == "desk/polite@1"

    assert touchstone("deploy", "polite", "desk-polite", "--json").json == {
        "endpoint": "desk-polite",
        "revision": 1,
        "model": "desk/polite@1",
        "stage": None,
    }
    assert "desk-polite" in touchstone("endpoints").out and "desk/polite@1" in touchstone("models").out
    assert touchstone("runs", "--json").json["items"][0]["run"] == run
    touchstone("deploy", "polite@1", "desk-polite")
    assert touchstone("rollback", "desk-polite", "--json").json["revision"] == 1
    staged = touchstone("deploy", "polite@1", "desk-polite", "--canary", "0.1")
    assert staged.status == 0 and "has it as a canary: revision 3" in staged.out


def test_a_run_that_fails_says_why(frozen: None, touchstone: Touchstone, tmp_path: Path) -> None:
    recipe = tmp_path / "refused.toml"
    recipe.write_text("label_smoothing = 0.1\n")
    found = touchstone("train", "--dataset", "answers", "--recipe", recipe, "--wait", "--json")
    assert (
        found.status == 1 and found.json["state"] == "failed" and "one pair" in found.json["error"]["message"]
    )
    shown = touchstone("logs", found.json["run"], "--follow")
    assert shown.status == 1 and "three steps done" in shown.out and "one pair" in shown.err


def test_a_run_that_is_only_queued(frozen: None, touchstone: Touchstone) -> None:
    found = touchstone("train", "--dataset", "answers", "--recipe", "bradley-terry", "--seed", 4)
    assert found.status == 0 and "touchstone logs" in found.out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("train", "--dataset", "none"), 1, "none"),
        (("train", "--dataset", "none", "--recipe", "no-such.toml"), 1, "no-such.toml: No such file"),
        (("logs", "999999"), 1, "There is no run 999999"),
        (("logs", "x"), 2, "invalid int value"),
        (
            ("deploy", "none", "desk-x"),
            1,
            "There is no model desk/none; see the Models page of desk. (at /model)",
        ),
        (("deploy", "m", "e", "--shadow", "--canary", "0.1"), 2, "leave one of them out"),
        (("deploy", "m", "e", "--automatic"), 2, "--automatic is about a release"),
        (("rollback", "desk-x"), 1, "desk-x"),
        (("campaigns", "--limit", "0"), 2, "--limit must be at least 1"),
    ],
)
def test_refusals_are_one_sentence(
    touchstone: Touchstone, arguments: tuple[str, ...], status: int, words: str
) -> None:
    found = touchstone(*arguments)
    assert (found.status, found.out) == (status, "") and words in found.err and "Traceback" not in found.err


def test_switching_off_and_on(client: Client, touchstone: Touchstone, project: Project) -> None:
    Endpoint.objects.create(project=project, name="desk-x")
    found = touchstone("switch-off", "desk-x", "--reason", "looks hacked", "--json")
    assert found.json == {"endpoint": "desk-x", "switched_off": True, "reason": "looks hacked"}
    assert "off: looks hacked" in touchstone("endpoints").out
    assert touchstone("switch-on", "desk-x").out == "desk-x is on.\n"


def test_campaigns_as_a_table(client: Client, touchstone: Touchstone) -> None:
    for number in range(3):
        client.campaigns.create(f"Campaign {number}", ["pairwise"])
    found = touchstone("campaigns", "--limit", 2)
    assert found.out.splitlines()[0].split() == [
        "NAME",
        "STATE",
        "FEEDBACK",
        "ITEMS",
        "ANNOTATIONS",
        "CREATED",
    ]
    assert len(found.out.splitlines()) == 3 and "the newest 2" in found.err
    assert touchstone("campaigns", "--json").json["more"] is False
