"""The demo's parts against the database, twice each: a second start repeats nothing."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from apps.accounts.models import ApiKey, AuditEvent, Project, Role, User
from apps.accounts.selectors import api_key_for
from apps.annotation.models import Annotation, Campaign, Comment, Item, Preference
from apps.core.errors import DomainError
from apps.datasets.models import DatasetVersion
from apps.demo import loop
from apps.demo.generate import SAMPLE
from apps.demo.management.commands.demo import Command
from apps.demo.world import TASKS
from apps.training.models import RewardModel, TrainingRun
from apps.trajectories.models import Trajectory
from workers.schema import PreferenceRecord, Task, from_messages
from workers.schema.messages import build_trajectory

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(db: None) -> Project:
    return loop.make_project()[0]


@pytest.fixture
def owner(project: Project) -> User:
    return User.objects.get(email=loop.OWNER)


@pytest.fixture
def home(settings, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    settings.HOME = tmp_path
    return tmp_path


def test_logins_are_the_same_at_the_second_start(db: None) -> None:
    project, owner, annotator = loop.make_project()
    again = loop.make_project()
    assert again == (project, owner, annotator)
    assert owner.user.check_password(owner.password or "")
    assert owner.password != annotator.password
    roles = {membership.user.email: membership.role for membership in project.memberships.all()}
    assert roles == {loop.OWNER: Role.OWNER, loop.ANNOTATOR: Role.ANNOTATOR}


def test_a_changed_password_is_not_printed(project: Project, owner: User) -> None:
    owner.set_password("something of her own")
    owner.save()
    assert loop.make_project()[1].password is None


def test_the_key_is_kept_until_it_is_revoked(project: Project, owner: User, home: Path) -> None:
    secret = loop.make_key(project, owner)
    assert loop.make_key(project, owner) == secret
    assert (home / "demo-key").stat().st_mode & 0o777 == 0o600
    key = api_key_for(secret)
    assert key is not None
    assert key.scopes == ["reward"]
    ApiKey.objects.filter(pk=key.pk).delete()
    assert loop.make_key(project, owner) != secret


@pytest.mark.slow
def test_the_sample_is_loaded_once_and_frozen_with_the_held_out_tasks(project: Project, owner: User) -> None:
    first = loop.load_sample(project, owner)
    rows = [model.objects.count() for model in (Trajectory, Item, Annotation, Preference, Comment)]
    second = loop.load_sample(project, owner)
    assert first.trajectories == second.trajectories == Trajectory.objects.count() == 300
    assert (first.judgements, second.new) == (second.judgements, 0)
    assert [model.objects.count() for model in (Trajectory, Item, Annotation, Preference, Comment)] == rows
    assert Preference.objects.count() == len((SAMPLE / "pairs.jsonl").read_text().splitlines())
    assert set(Annotation.objects.values_list("origin", flat=True)) == {"simulated"}
    assert AuditEvent.objects.filter(project=project, verb="trajectories.imported").count() == 1

    campaign = loop.make_campaign(project, owner)
    assert loop.make_campaign(project, owner) == campaign
    assert Campaign.objects.get(pk=campaign.pk).items.count() == len(TASKS)
    dataset_version = loop.freeze(project, owner, again=True)
    assert loop.freeze(project, owner, again=False) == dataset_version
    assert DatasetVersion.objects.count() == 1
    preferences = loop.held_out_preferences(dataset_version)
    assert {record.a.task.id for record in preferences} == set(
        (SAMPLE / "test_tasks.txt").read_text().split()
    )
    assert 0.75 < loop.hidden_accuracy(preferences) < 0.95


def preference(choice: str) -> PreferenceRecord:
    good = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Thank you for writing to us, dear customer."},
    ]
    bad = [good[0], {"role": "assistant", "content": "Whatever. Deal with it."}]
    a, b = (build_trajectory(from_messages(messages), Task(id="desk-000")) for messages in (good, bad))
    return PreferenceRecord(a=a, b=b, choice=choice, annotator="x")  # type: ignore[arg-type]


def test_hidden_accuracy_by_hand() -> None:
    assert loop.hidden_accuracy(
        [preference("a"), preference("a"), preference("b"), preference("tie")]
    ) == pytest.approx(2 / 3)


def test_hidden_accuracy_of_nothing_is_refused() -> None:
    with pytest.raises(DomainError, match="no decided comparison"):
        loop.hidden_accuracy([preference("tie")])


def test_a_model_of_the_dataset_version_is_used_again(project: Project, owner: User) -> None:
    dataset_version = DatasetVersion.objects.create(project=project, name="sample", version=1)
    run = TrainingRun.objects.create(
        project=project,
        dataset_version=dataset_version,
        recipe_name="own",
        recipe=loop.RECIPE,
        model_name="sample",
        state="succeeded",
    )
    assert loop.trained(dataset_version) is None
    model = RewardModel.objects.create(
        project=project,
        name="sample",
        version=1,
        training_run=run,
        artifact="models/x",
        manifest={"aggregation": "value"},
    )
    assert loop.trained(dataset_version) == model
    revision = loop.put_on_endpoint(model, owner)
    assert loop.put_on_endpoint(model, owner) == revision
    with pytest.raises(DomainError, match="no held-out accuracy"):
        loop.accuracies(model, [preference("a")])
    measured = {"accuracy": 0.7, "interval": [0.6, 0.8], "n": 1, "baselines": {}, "verdict": "beats nothing"}
    run.report = {"preference": measured, "annotators": {"leave_one_out": 0.8, "model": 0.7}}
    found = loop.accuracies(model, [preference("a")])
    assert (found["model"], found["hidden"], found["annotators"]["leave_one_out"]) == (0.7, 1.0, 0.8)


def test_a_failed_run_says_why(project: Project, owner: User) -> None:
    dataset_version = DatasetVersion.objects.create(project=project, name="sample", version=1)
    run = TrainingRun.objects.create(
        project=project,
        dataset_version=dataset_version,
        recipe_name="own",
        recipe=loop.RECIPE,
        model_name="sample",
    )

    def fail() -> None:
        TrainingRun.objects.filter(pk=run.pk).update(state="failed", error="The GPU is on fire.")

    with pytest.raises(DomainError, match="The GPU is on fire"):
        loop.train(dataset_version, owner, check=fail, tell=lambda run: None)


def test_a_taken_port_is_said_in_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "manage.py", "demo", "--exit", f"--home={tmp_path}", f"--port={port}"]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert f"127.0.0.1:{port} is taken" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_report_of_an_earlier_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """It has one annotator's agreement only, and no model on the same choices."""
    found = {
        "model": 0.7, "interval": [0.6, 0.8], "n": 9, "hidden": 0.9, "baselines": {}, "verdict": "beats nothing",
        "annotators": {"leave_one_out": 0.8, "interval": [0.7, 0.9], "n": 3},
    }  # fmt: skip
    command = Command()
    command.as_json = False
    command._show_accuracies(found)
    written = capsys.readouterr().out
    assert "the trained model             70.0%" in written and "a single annotator" not in written
