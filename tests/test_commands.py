"""The commands a script goes through, one after another, and the keys it may rely on."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import ApiKey, Project, User
from apps.training import tasks
from apps.training.models import Evaluation, TrainingRun
from apps.trajectories.models import Trajectory
from tests.datasets.feedback import pair

RECIPE = """
width = 16
attention_heads = 2
ensemble = 2
epochs = 3
precision = "float32"
"""


pytestmark = pytest.mark.usefixtures("own_home")


def call(*arguments: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command(*map(str, arguments), "--json", stdout=out, stderr=io.StringIO())
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def refused(*arguments: Any) -> str:
    with pytest.raises(CommandError) as caught:
        call_command(*map(str, arguments), stdout=io.StringIO(), stderr=io.StringIO())
    return str(caught.value)


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def judgements() -> list[dict[str, Any]]:
    """Twelve tasks, each judged by three, of whom cem says the opposite in every third."""
    return [
        pair(f"task-{number}", annotator=name, choice="b" if name == "cem" and number % 3 == 0 else "a")
        for number in range(12)
        for name in ("ann", "bob", "cem")
    ]


@pytest.mark.django_db
def test_from_a_project_to_an_endpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_children: None
) -> None:
    assert call("create_project", "desk") == {"slug": "desk"}
    made = call("create_user", "rose@example.org", "--project", "desk", "--role", "owner")
    assert set(made) == {"email", "password"}
    assert User.objects.get(email="rose@example.org").check_password(made["password"])
    made = call("create_api_key", "desk", "--scopes", "reward,train")
    assert made["scopes"] == ["reward", "train"]
    assert made["key"].startswith(ApiKey.objects.get().prefix)

    file = written(tmp_path / "pairs.jsonl", *judgements())
    command = ("import_feedback", "desk", file, "--format", "pairs")
    none: dict[str, list[Any]] = {"rejected": [], "dropped": [], "kept": []}
    assert call(*command) == {"created": 36, "duplicates": 0} | none
    assert call(*command) == {"created": 0, "duplicates": 36} | none

    found = call("agreement", "desk")["kinds"]["pairwise"]
    assert set(found) == {"alpha", "interval", "level", "items", "once", "annotators", "pairs", "criteria"}
    assert (found["items"], found["level"]) == (12, "nominal")
    assert {(each_pair["a"], each_pair["b"], each_pair["n"]) for each_pair in found["pairs"]} == {
        ("ann", "bob", 12),
        ("ann", "cem", 12),
        ("bob", "cem", 12),
    }

    out = tmp_path / "out.jsonl"
    assert call("export_feedback", "desk", "--out", out) == {"lines": 36}
    assert call("import_feedback", "desk", out, "--format", "pairs")["duplicates"] == 36

    test_tasks = tmp_path / "test.txt"
    test_tasks.write_text("task-0\ntask-1\ntask-2\n")
    frozen = call("freeze_dataset", "desk", "first", "--test-tasks", test_tasks)
    assert {"name", "hash", "records", "splits"} <= set(frozen)
    assert (frozen["name"], frozen["records"]) == ("desk/first@1", {"pairwise": 36})
    assert frozen["splits"]["test"] == 9
    assert sum(frozen["splits"].values()) == 36
    assert call("freeze_dataset", "desk", "first", "--test-tasks", test_tasks)["hash"] == frozen["hash"]
    exported = call("export_dataset", "desk/first", "--format", "trl", "--out", tmp_path / "trl.jsonl")
    assert exported["name"] == "desk/first@2"

    recipe = tmp_path / "small.toml"
    recipe.write_text(RECIPE)
    monkeypatch.setattr(time, "sleep", lambda _: tasks.advance_runs())  # the worker, while the command waits
    command = ("train", "desk", "--dataset", "first@1", "--recipe", recipe, "--wait")
    trained = call(*command, "--name", "polite")
    assert (trained["state"], trained["model"]) == ("succeeded", "desk/polite@1")
    report = trained["report"]
    assert {"annotators", "preference", "calibration", "length_correlation", "seconds"} <= set(report)
    assert {"accuracy", "interval", "n", "baselines", "log_loss"} <= set(report["preference"])
    assert set(report["preference"]["baselines"]) == {
        "longer",
        "shorter",
        "fewer_steps",
        "linear",
        "structure",
    }
    assert report["preference"]["n"] == 9
    assert {"leave_one_out", "interval", "model", "difference", "difference_interval"} <= set(
        report["annotators"]
    )
    assert "ece" in report["calibration"]
    assert call(*command, "--name", "polite", "--seed", "1")["model"] == "desk/polite@2"

    measured = call("evaluate", "desk/polite@1", "--dataset", "desk/first@1")
    assert measured["model"] == "desk/polite@1"
    assert measured["report"]["preference"]["accuracy"] == report["preference"]["accuracy"]
    compared = call("compare", "desk/polite@2", "desk/polite@1", "--dataset", "desk/first@1")
    assert compared["report"]["against"]["n"] == 9
    assert Evaluation.objects.count() == 4  # each run's own, and these two

    deployed = call("deploy", "desk/polite", "desk-reward")
    assert (deployed["endpoint"], deployed["revision"], deployed["model"]) == (
        "desk-reward",
        1,
        "desk/polite@2",
    )
    assert deployed["served"] is False  # no reward service runs here
    assert call("deploy", "desk/polite@1", "desk-reward")["revision"] == 2
    assert call("rollback", "desk-reward")["revision"] == 1


@pytest.fixture
def frozen(project: Project, tmp_path: Path) -> str:
    file = written(tmp_path / "pairs.jsonl", *judgements())
    call("import_feedback", "desk", file, "--format", "pairs")
    return str(call("freeze_dataset", "desk", "first")["name"])


class TestRefused:
    def test_a_bad_judgement_names_its_line_and_changes_nothing(
        self, project: Project, tmp_path: Path
    ) -> None:
        file = written(tmp_path / "pairs.jsonl", pair("task-1"), pair("task-2", choice="c"), pair("task-3"))
        said = refused("import_feedback", "desk", file, "--format", "pairs")
        assert "Nothing was imported" in said
        assert not Trajectory.objects.exists()
        kept = call("import_feedback", "desk", file, "--format", "pairs", "--keep-good")
        assert kept["created"] == 2
        (one,) = kept["rejected"]
        assert (one["line"], one["pointer"]) == (2, "/choice")

    def test_files_that_are_not_there(self, project: Project, frozen: str, tmp_path: Path) -> None:
        assert "file none.jsonl does not exist" in refused(
            "import_feedback", "desk", "none.jsonl", "--format", "pairs"
        )
        assert "file none.txt does not exist" in refused(
            "freeze_dataset", "desk", "x", "--test-tasks", "none.txt"
        )
        assert "The file none.toml does not exist" in refused(
            "train", "desk", "--dataset", "first", "--recipe", "none.toml"
        )
        (tmp_path / "empty.txt").write_text("\n")
        assert "no task IDs" in refused("freeze_dataset", "desk", "x", "--test-tasks", tmp_path / "empty.txt")

    def test_an_unknown_key_of_a_recipe(self, project: Project, frozen: str, tmp_path: Path) -> None:
        (tmp_path / "bad.toml").write_text("lerning_rate = 0.1\n")
        said = refused("train", "desk", "--dataset", "first", "--recipe", tmp_path / "bad.toml")
        assert "unknown key 'lerning_rate'" in said
        assert "(at /lerning_rate)" in said
        assert not TrainingRun.objects.exists()

    def test_names_that_are_not_there(self, project: Project, frozen: str) -> None:
        assert "no recipe 'bt'" in refused("train", "desk", "--dataset", "first", "--recipe", "bt")
        assert "second" in refused("train", "desk", "--dataset", "second", "--recipe", "bradley-terry")
        assert "desk/polite" in refused("evaluate", "desk/polite", "--dataset", frozen)
        assert "desk/polite" in refused("deploy", "desk/polite", "desk-reward")

    def test_fewer_than_two_usable_pairs(self, project: Project, tmp_path: Path) -> None:
        file = written(tmp_path / "one.jsonl", pair("task-1"))
        call("import_feedback", "desk", file, "--format", "pairs")
        call("freeze_dataset", "desk", "one")
        said = refused("train", "desk", "--dataset", "one", "--recipe", "bradley-terry")
        assert "usable" in said
        assert not TrainingRun.objects.exists()

    def test_nothing_to_freeze(self, project: Project) -> None:
        assert "No feedback matches the filters" in refused("freeze_dataset", "desk", "first")

    def test_nobody_has_judged(self, project: Project) -> None:
        assert call("agreement", "desk") == {"kinds": {}}
