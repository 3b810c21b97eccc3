"""The feedback loop from a trainer's side: comparisons in, a dataset, a run, a revision; over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import Project, Scope
from apps.accounts.services import create_api_key, create_project
from apps.annotation.models import Preference
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.datasets.models import DatasetVersion
from apps.datasets.version_builder import build_dataset_version
from apps.rewards.models import Endpoint
from apps.training import runner
from apps.training.models import TrainingRun
from docs.examples.command_line import argument_parser
from docs.examples.people import PAIRS, FeedbackLoop, Refused, comparisons, first_tries

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_home")]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What workers do, in a thread; a training is over at once."""
    monkeypatch.setattr(runner, "CHILD", "tests.training.fake_child")
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.05):
            for model, execute in ((DatasetVersion, build_dataset_version), (TrainingRun, runner.execute)):
                if (job := job_queue.claim_next(model)) is not None:
                    with suppress(DomainError):
                        execute(job)
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join(20)


def feedback_loop(live_server: Any, scopes: list[Scope], **more: Any) -> FeedbackLoop:
    project: Project = create_project(slug="desk")
    key = create_api_key(project=project, scopes=scopes)[1]
    return FeedbackLoop(live_server.url, "desk", "desk", key, **more)


def test_once_around(live_server: Any, workers: None) -> None:
    turned = feedback_loop(live_server, [Scope.FEEDBACK_WRITE, Scope.TRAIN, Scope.ADMIN], own=())
    some = [
        entry for entry in first_tries(0) if entry[0].id in ("desk-000", "desk-001", "desk-002", "desk-003")
    ]
    assert turned.collect_comparisons(some, occasion="first") == Preference.objects.count() == 4 * PAIRS
    assert (
        turned.collect_comparisons(some, occasion="first") == 4 * PAIRS == Preference.objects.count()
    )  # said already
    assert turned.retrain() == "desk/desk@1"
    assert turned.retrain() == "desk/desk@2"
    endpoint = Endpoint.objects.get()
    assert endpoint.active is not None and endpoint.active.spec["components"][0]["model"] == "desk/desk@2"
    assert "hidden reward" in endpoint.active.reason  # which a check that fails asks for
    dataset_version = DatasetVersion.objects.order_by("version").first()
    assert dataset_version is not None and dataset_version.records == {"pairwise": 4 * PAIRS}
    assert all(name.startswith("sim-") for name in dataset_version.annotators)


def test_what_is_refused_is_said(live_server: Any, workers: None) -> None:
    turned = feedback_loop(live_server, [Scope.TRAIN])
    with pytest.raises(Refused, match="403"):
        turned.collect_comparisons(first_tries(0)[:16], occasion="first")
    with pytest.raises(Refused, match="failed: No feedback matches the filters"):
        turned.retrain()


def test_a_server_that_does_not_respond_is_an_error() -> None:
    unreachable = FeedbackLoop("http://127.0.0.1:9", "desk", "desk", "tsk_1")
    with pytest.raises(Refused, match="does not respond"):
        unreachable.retrain()


def test_a_key_is_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TOUCHSTONE_KEY", raising=False)
    with pytest.raises(SystemExit):
        argument_parser("Said.").parse_args(["--url", "http://x"])
    assert "--key" in capsys.readouterr().err
    monkeypatch.setenv("TOUCHSTONE_KEY", "tsk_1")
    assert argument_parser("Said.", seed=3).parse_args(["--url", "http://x"]).key == "tsk_1"


def test_people_are_of_many_minds() -> None:
    said = list(comparisons(first_tries(1), "a"))
    assert len({entry["annotator"] for entry in said}) > 2
    assert {entry["choice"] for entry in said} >= {"a", "b"}
    assert said == list(comparisons(first_tries(1), "a")) != list(comparisons(first_tries(1), "b"))
