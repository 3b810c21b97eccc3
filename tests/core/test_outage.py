"""A database that takes no changes, or has no room, time or place for one: 503 and a sentence, never 500; nothing is
lost, and everything goes on by itself."""

import re
import threading
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, InternalError, OperationalError, connection
from django.test import Client
from django.urls import reverse
from psycopg import errors

from apps.accounts.models import Project, Scope, User
from apps.accounts.services import create_api_key
from apps.core.database import outage
from apps.core.database.migration_state import database_is_ready
from apps.core.jobs import beat, job_queue
from apps.core.jobs.periodic import Periodic
from apps.datasets.models import DatasetVersion
from apps.rubrics.models import Rubric
from apps.trajectories.models import Trajectory
from tests.core.read_only import read_only_database

PASSWORD = "correct horse battery"


@pytest.mark.django_db(transaction=True)
def test_a_read_only_database(researcher: User, project: Project, caplog: Any) -> None:
    researcher.set_password(PASSWORD)
    researcher.save()
    key = create_api_key(project=project, scopes=[Scope.INGEST])[1]
    job = DatasetVersion.objects.create(project=project, name="first", version=1)
    signed_in = Client(raise_request_exception=False)
    signed_in.force_login(researcher)
    browser = Client(raise_request_exception=False)
    asked = _requests(signed_in, browser, key, researcher.email, project.slug)
    executed: list[int] = []
    execute = _executing(executed)

    with read_only_database():
        for name, ask in asked.items():
            answer = ask()
            assert (name, answer.status_code) == (name, 503)
            assert answer["Retry-After"]
            assert "takes no changes right now" in answer.content.decode()
        page = asked["a form"]()
        assert "Send it again" in page.content.decode() and "Kept words" in page.content.decode()
        assert "Send it again" not in asked["login"]().content.decode()  # a password belongs into no page
        # Reading goes on.
        assert signed_in.get(reverse("rubrics:rubric-list", args=[project.slug])).status_code == 200
        assert not database_is_ready()

        job_queue.drain_queue(DatasetVersion, execute)  # a worker that is nudged
        beat._run_one(Periodic("write", 5.0, lambda: Project.objects.create(slug="x", name="x")))
        assert executed == []
        assert not [record for record in caplog.records if record.levelname == "ERROR"]

    # By itself: nothing here closes a connection.
    assert database_is_ready()
    job_queue.drain_queue(DatasetVersion, execute)
    assert executed == [job.pk]
    for name, ask in asked.items():
        assert (name, ask().status_code // 100) in ((name, 2), (name, 3))
    assert Rubric.objects.filter(name="Kept words").exists() and Trajectory.objects.exists()


def _requests(signed_in: Client, browser: Client, key: str, email: str, slug: str) -> dict[str, Any]:
    said = {"name": "polite", "definition": "", "scale_low": 1, "scale_high": 5, "weight": 1, "rank": 1}
    rubric = {
        "name": "Kept words",
        "about": "",
        "criteria-TOTAL_FORMS": 1,
        "criteria-INITIAL_FORMS": 0,
        **{f"criteria-0-{name}": value for name, value in said.items()},
    }
    create = reverse("rubrics:rubric-create", args=[slug])
    line = {"id": "one", "task": {"id": "z"}, "messages": [
        {"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "There."},
    ]}  # fmt: skip
    return {
        "login": lambda: browser.post(reverse("accounts:login"), {"username": email, "password": PASSWORD}),
        "a form": lambda: signed_in.post(create, rubric),
        "a form by htmx": lambda: signed_in.post(create, rubric, headers={"HX-Request": "true"}),
        "the API": lambda: Client(raise_request_exception=False).post(
            f"/api/v1/projects/{slug}/trajectories?format=openai",
            line,
            content_type="application/json",
            headers={"Authorization": f"Bearer {key}"},
        ),
    }


def _executing(executed: list[int]) -> Any:
    def execute(job: DatasetVersion) -> None:
        executed.append(job.pk)
        job_queue.finish(job, job_queue.JobState.SUCCEEDED)

    return execute


@pytest.mark.django_db(transaction=True)
def test_the_heart_of_a_job_outlives_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it met was no OperationalError, so that its thread ended and the job was lost."""
    DatasetVersion.objects.create(project=project, name="first", version=1)
    job = job_queue.claim_next(DatasetVersion)
    assert job is not None
    tried, again = threading.Event(), threading.Event()
    monkeypatch.setattr(job_queue, "heartbeat_seconds", lambda: 0.01)
    real = job_queue.renew_heartbeat

    def watched(job: Any, **changes: Any) -> bool:
        try:
            asked = real(job, **changes)
        except DatabaseError:
            tried.set()
            raise
        again.set()
        return asked

    monkeypatch.setattr(job_queue, "renew_heartbeat", watched)
    with job_queue.keep_heartbeat(job) as heartbeat:
        with read_only_database():
            assert tried.wait(10)
        again.clear()
        assert again.wait(10)
        assert not heartbeat.lost.is_set()


def _raised(kind: type[psycopg.Error], django: type[DatabaseError]) -> BaseException:
    try:
        try:
            raise kind("from the server")
        except psycopg.Error as error:
            raise django(*error.args) from error
    except DatabaseError as error:
        return error


@pytest.mark.parametrize(
    ("kind", "django", "sentence"),
    [
        (errors.ReadOnlySqlTransaction, InternalError, "takes no changes"),
        (errors.DiskFull, OperationalError, "disk of the database is full"),
        (errors.TooManyConnections, OperationalError, "too much to do"),
        (errors.OutOfMemory, OperationalError, "too much to do"),
        (errors.LockNotAvailable, OperationalError, "too much to do"),
        (errors.SerializationFailure, OperationalError, "at the same moment"),
        (errors.DeadlockDetected, OperationalError, "at the same moment"),
        (errors.CannotConnectNow, OperationalError, "cannot be reached"),
        (errors.AdminShutdown, OperationalError, "cannot be reached"),
        (errors.IdleInTransactionSessionTimeout, InternalError, "took too long"),
        (errors.QueryCanceled, OperationalError, "took too long"),
    ],
)
def test_every_kind_has_a_sentence(kind: Any, django: Any, sentence: str) -> None:
    for error in (_raised(kind, django), kind("from the server")):  # COPY is not wrapped
        assert outage.met_outage(error) is error
        assert sentence in outage.in_words(error)
        # The same statement would take as long again, so a job ends with it.
        assert outage.is_outage(error) is (kind is not errors.QueryCanceled)


@pytest.mark.parametrize(
    "error",
    [
        IntegrityError("twice"), ValueError("x"), InternalError("x"), KeyError("x"),
        _raised(errors.UndefinedTable, OperationalError), _raised(errors.InternalError_, InternalError),
    ],
)  # fmt: skip
def test_a_bug_is_none(error: BaseException) -> None:
    assert outage.met_outage(error) is None and not outage.is_outage(error)


@pytest.mark.parametrize("kind", [errors.ReadOnlySqlTransaction, errors.DiskFull, errors.QueryCanceled])
@pytest.mark.django_db
def test_pages_and_api_answer_503(
    researcher_client: Client, project: Project, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    def fails(*arguments: Any, **named: Any) -> Any:
        raise _raised(kind, InternalError if kind is errors.ReadOnlySqlTransaction else OperationalError)

    researcher_client.raise_request_exception = False
    monkeypatch.setattr("apps.rubrics.views.render", fails)
    answer = researcher_client.get(reverse("rubrics:rubric-create", args=[project.slug]))
    assert answer.status_code == 503 and re.fullmatch(r"\d+", answer["Retry-After"])
    assert connection.connection is not None  # of the test, within its transaction
