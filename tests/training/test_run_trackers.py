"""Runs that are logged to trackers, over a process that stands in for each tracker."""

import json
import signal
import sys
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.core.errors import DomainError
from apps.core.jobs.job_queue import Interrupted, JobState, claim_next, request_cancel
from apps.datasets.models import DatasetVersion
from apps.training import run_trackers, runner, services
from apps.training.models import TrainingRun
from apps.training.run_trackers import RunTrackers, seconds_to_end
from apps.training.selectors import run_folder
from apps.training.tracker_options import TrackerOptions, tracker_results
from tests.training import fake_child as child

pytestmark = [pytest.mark.usefixtures("fake_child", "fake_tracker")]


@pytest.fixture
def fake_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_trackers, "CHILD", "tests.training.fake_tracker")


def claimed(
    dataset_version: DatasetVersion, project: str, behaviour: float = child.COMPLETE, track: str = "mlflow"
) -> TrainingRun:
    services.start_run(
        project=dataset_version.project,
        dataset_version=dataset_version,
        recipe={"label_smoothing": behaviour},
        track=[track],
        track_project=project,
        by=None,
    )
    run = claim_next(TrainingRun)
    assert run is not None
    return run


def test_a_tracked_run_has_a_link_and_its_tracker_the_spec_but_no_secret_of_ours(
    dataset_version: DatasetVersion, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    monkeypatch.setenv("WANDB_API_KEY", "of another tracker")
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    run = claimed(dataset_version, "fine")
    runner.execute(run)
    run.refresh_from_db()
    assert (run.state, run.tracker_states) == (
        JobState.SUCCEEDED,
        {"mlflow": {"id": "first", "url": "https://tracker.example/mlflow", "problem": ""}},
    )
    folder = run_folder(run) / "tracking"
    assert json.loads((folder / "ended-as.json").read_text()) == {"state": "succeeded", "error": ""}
    seen = json.loads((folder / "seen.json").read_text())["environment"]
    assert seen["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:5000"
    assert not {"WANDB_API_KEY", "DATABASE_URL"} & seen.keys()
    description = json.loads((folder / "description.json").read_text())
    assert (description["name"], description["default_project"]) == (f"desk-run-{run.pk}", "touchstone-desk")
    assert description["parameters"]["dataset"] == "desk/first@1"
    assert "MLFLOW" not in (folder.parent / "environment.json").read_text()
    page = researcher_client.get(reverse("training:run-detail", args=["desk", run.pk])).content.decode()
    assert 'href="https://tracker.example/mlflow"' in page
    copy = researcher_client.get(f"{reverse('training:run-create', args=['desk'])}?like={run.pk}")
    assert copy.context["form"].initial["track"] == ["mlflow"]


def test_a_tracker_that_fails_does_not_stop_training_and_is_named(
    dataset_version: DatasetVersion, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for project, problem in (
        ("broken", "ConnectionError: connection refused."),
        ("crash", "The process of the tracker ended with status 1."),
        ("silent", "The tracker did not take the end of the run within 0 seconds."),
    ):
        monkeypatch.setattr(run_trackers, "GRACE", 0.3 if project == "silent" else 20.0)
        run = claimed(dataset_version, project)
        runner.execute(run)
        run.refresh_from_db()
        assert (run.state, run.tracker_states["mlflow"]["problem"]) == (JobState.SUCCEEDED, problem)
        log = (run_folder(run) / "log.txt").read_text()
        assert f"MLflow: {problem}" in log
        assert (f"MLflow: {problem} Training continues.\n" in log) == (project != "silent")
    page = researcher_client.get(reverse("training:run-detail", args=["desk", run.pk])).content.decode()
    assert "did not take the end of the run" in page


def test_that_states_cannot_be_stored_does_not_stop_training(
    dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_it_came(run_trackers: RunTrackers, name: str) -> dict[str, str]:
        return {"id": "a\0"}

    with monkeypatch.context() as patched:
        patched.setattr(RunTrackers, "_read_state", as_it_came)
        run = claimed(dataset_version, "fine")
        runner.execute(run)
    run.refresh_from_db()
    assert (run.state, run.tracker_states) == (
        JobState.SUCCEEDED,
        {"mlflow": {"id": "", "url": "", "problem": ""}},
    )


def test_a_tracker_that_cannot_be_started_is_named(
    dataset_version: DatasetVersion, researcher_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(run_trackers: RunTrackers) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunTrackers, "_prepare", full)
    run = claimed(dataset_version, "fine")
    runner.execute(run)
    page = researcher_client.get(reverse("training:run-detail", args=["desk", run.pk])).content.decode()
    assert "The files for the tracker could not be written: No space left on device." in page
    for states, sentence in (
        ({}, "MLflow: not logged: the run ended before tracking began"),
        ({"mlflow": {"id": "", "url": "", "problem": ""}}, "MLflow: not logged yet"),
        ({"mlflow": {"id": "7", "url": "", "problem": ""}}, "MLflow: it has no address to open"),
    ):
        (result,) = tracker_results(run.tracker_options, states, is_finished=True)
        assert result.sentence == sentence


@pytest.mark.parametrize(
    ("behaviour", "state"), [(child.REFUSE, JobState.FAILED), (child.WAIT, JobState.CANCELLED)]
)
def test_the_final_state_is_sent(dataset_version: DatasetVersion, behaviour: float, state: str) -> None:
    run = claimed(dataset_version, "fine", behaviour)
    if behaviour == child.WAIT:
        request_cancel(run)
    runner.execute(run)
    told = json.loads((run_folder(run) / "tracking" / "ended-as.json").read_text())
    assert (run.state, told) == (state, {"state": state, "error": run.error})


def test_an_interrupted_run_is_continued_at_the_tracker(
    dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = claimed(dataset_version, "fine", child.WAIT)
    monkeypatch.setattr(runner.shutdown, "is_asked", (run_folder(run) / "pid").is_file)
    with pytest.raises(Interrupted):
        runner.execute(run)
    folder = run_folder(run) / "tracking"
    assert json.loads((folder / "ended-as.json").read_text())["state"] == "interrupted"
    (folder / "mlflow.json").unlink()  # as on another machine
    monkeypatch.setattr(runner.shutdown, "is_asked", lambda: False)
    run.refresh_from_db()
    runner.execute(run)
    run.refresh_from_db()
    assert run.tracker_states["mlflow"]["id"] == "first, continued"


def test_the_trackers_of_a_worker_that_hangs_are_ended_by_the_next(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version, "silent")
    folder = run_folder(run)
    (folder / "tracking").mkdir(parents=True)
    hanging, following = (RunTrackers(run, folder) for _ in range(2))
    hanging.start()
    first = hanging._children["mlflow"]
    assert first.poll() is None
    following.start()
    try:
        assert first.wait(20) == -signal.SIGKILL
        assert following._children["mlflow"].poll() is None
    finally:
        following.kill()


def test_with_weights_trackers_have_longer_to_end(dataset_version: DatasetVersion) -> None:
    run = claimed(dataset_version, "fine")
    (run_folder(run) / "model").mkdir(parents=True)
    (run_folder(run) / "model" / "weights").write_bytes(bytes(10_000_000))
    assert (
        seconds_to_end(TrackerOptions.read(run.tracker_options), run_folder(run), "succeeded")
        == run_trackers.GRACE
    )
    run.tracker_options |= {"weights": True}
    assert (
        seconds_to_end(TrackerOptions.read(run.tracker_options), run_folder(run), "succeeded")
        == run_trackers.GRACE + 2
    )
    assert (
        seconds_to_end(TrackerOptions.read(run.tracker_options), run_folder(run), "failed")
        == run_trackers.GRACE
    )


def test_the_page_of_an_ended_run_asks_what_became_of_it_at_trackers(
    dataset_version: DatasetVersion, researcher_client: Client
) -> None:
    run = claimed(dataset_version, "fine")
    runner.execute(run)
    run.refresh_from_db()
    page = reverse("training:run-detail", args=["desk", run.pk])
    part = reverse("training:run-status", args=["desk", run.pk]) + "?part=trackers"
    assert f'hx-get="{part}"' in researcher_client.get(page).content.decode()
    services.record_tracker_states(
        run=run, states={"mlflow": {"id": "", "url": "", "problem": "It is late."}}
    )
    answer = researcher_client.get(part)
    assert "It is late." in answer.content.decode() and "HX-Refresh" not in answer.headers
    TrainingRun.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(minutes=6))
    assert "part=trackers" not in researcher_client.get(page).content.decode()
    TrainingRun.objects.filter(pk=run.pk).update(tracker_options=run.tracker_options | {"weights": True})
    with (run_folder(run) / "model" / "weights").open("wb") as out:
        out.truncate(2 * 10**9)  # 400 s to upload
    assert f'hx-get="{part}"' in researcher_client.get(page).content.decode()


def test_what_is_refused(dataset_version: DatasetVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for given, message in (
        (
            {"track": ["comet"]},
            "There is no tracker 'comet'; available: mlflow, wandb, tensorboard, trackio.",
        ),
        ({"track": ["mlflow"]}, "Run `pip install -c constraints.txt mlflow-skinny` in the environment"),
        ({"track_project": "polite"}, "track_project has no effect without a tracker"),
        ({"track": ["tensorboard"], "track_weights": True}, "track_weights has no effect with TensorBoard"),
        ({"track": ["tensorboard", "wandb"], "track_project": "a/b"}, "up to 100 letters, digits, spaces"),
    ):
        with pytest.raises(DomainError, match=message.replace("(", r"\(")):
            services.start_run(
                project=dataset_version.project,
                dataset_version=dataset_version,
                recipe="bradley-terry",
                by=None,
                **given,  # type: ignore[arg-type]
            )


def test_the_form_and_only_web_addresses(dataset_version: DatasetVersion, researcher_client: Client) -> None:
    fields = {"dataset": dataset_version.pk, "recipe": "bradley-terry", "seed": 0}
    given = {"track": ["tensorboard", "wandb"], "track_project": "mine", "track_weights": "on"}
    path = reverse("training:run-create", args=["desk"])
    assert researcher_client.post(path, fields | given).status_code == 302
    run = TrainingRun.objects.get()
    assert run.tracker_options == {
        "trackers": ["tensorboard", "wandb"],
        "project": "mine",
        "weights": True,
    }
    for chosen in ({}, {"track": ["tensorboard"]}):
        refused = researcher_client.post(path, {**fields, **chosen, "track_weights": "on"})
        assert (refused.status_code, list(refused.context["form"].errors)) == (422, ["track_weights"])
    (result,) = tracker_results(
        {"trackers": ["wandb"]}, {"wandb": {"url": "javascript:alert(1)"}}, is_finished=True
    )
    assert (result.url, result.title) == ("", "Weights & Biases")
