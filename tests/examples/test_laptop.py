"""docs/examples/laptop.py, from a thousand traces to rewards: on a whole server, and a Langfuse by its contract."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from django.db import connection, connections

from apps.accounts.models import Project, Role, Scope
from apps.accounts.services import create_api_key
from apps.annotation.models import Annotation, Annotator, Campaign
from apps.annotation.services.queue import assign_next_item
from apps.config.asgi import application
from apps.core.errors import DomainError
from apps.core.jobs import job_queue
from apps.datasets.models import DatasetVersion
from apps.datasets.version_builder import build_dataset_version
from apps.rewards.serving.state import StoredModels
from apps.training import runner
from apps.training.models import TrainingRun
from apps.trajectories.models import Trajectory
from docs.examples import laptop
from tests.annotation.rows import submit
from tests.connectors.contract_server import Answer, Call, serve
from tests.connectors.langfuse_server import KEYS, LangfuseServer, langfuse_trace
from tests.factories import make_member
from tests.rewards.conftest import running_service, wait_until

TRACES, TASKS, ENOUGH = 1000, 250, 60
_QUERY = {"page", "limit"}


class ListedLangfuse(LangfuseServer):
    """Version 3, whose lists have inputs and outputs (trace.yml and legacy/observations-v1.yml of its definition)."""

    def answer(self, call: Call) -> Answer:
        listed = call.path.removeprefix("/api/public/")
        if call.basic != KEYS or listed not in ("traces", "observations"):
            return super().answer(call)
        assert set(call.query) == _QUERY
        rows = [self._trace(trace) for trace in self.traces.values()]
        if listed == "observations":
            rows = [row for trace in self.traces.values() for row in trace["observations"]]
        page, limit = int(call.query["page"]), int(call.query["limit"])
        meta = {"page": page, "limit": limit, "totalItems": len(rows), "totalPages": -(-len(rows) // limit)}
        return Answer({"data": rows[(page - 1) * limit : page * limit], "meta": meta})

    @staticmethod
    def _trace(trace: dict[str, Any]) -> dict[str, Any]:
        """With ids of observations and scores (TraceWithDetails)."""
        return trace | {"observations": [each["id"] for each in trace["observations"]], "scores": []}


@pytest.fixture
def langfuse() -> Iterator[str]:
    server = ListedLangfuse()
    for number in range(TRACES):
        trace = langfuse_trace(f"t{number}", "2026-01-31T12:00:00.000Z", question=_question(number), steps=1)
        answer = {
            "role": "assistant",
            "content": "It comes today, sorry for that." if (number // TASKS + number) % 2 else "Wait.",
        }
        trace["observations"][1]["output"] = answer
        server.traces[trace["id"]] = trace | {"metadata": {"task_id": f"parcel-{number % TASKS}"}}
    with serve(server) as url:
        yield url


def _question(number: int) -> str:
    return f"Where is parcel {number % TASKS}?"


@contextmanager
def in_a_thread(work: Any) -> Iterator[None]:
    """work is called until the block ends."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(0.02):
            work()
        connection.close()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def work_on_jobs() -> None:
    for model, execute in ((DatasetVersion, build_dataset_version), (TrainingRun, runner.execute)):
        if (job := job_queue.claim_next(model)) is not None:
            with suppress(DomainError):
                execute(job)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_thousand_traces_become_rewards(
    langfuse: str,
    own_home: None,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = Project.objects.create(slug="desk", name="Desk")
    user = make_member(project, "ann@example.org", Role.ANNOTATOR)
    annotator = Annotator.objects.create(project=project, user=user, name="ann")

    def annotate() -> None:
        """Prefers the answers with words of regret, until there are enough."""
        campaign = Campaign.objects.first()
        while (
            campaign is not None
            and campaign.state == "open"
            and (found := assign_next_item(campaign=campaign, annotator=annotator))
        ):
            if Annotation.objects.count() == ENOUGH:
                Campaign.objects.update(state=Campaign.State.CLOSED)
                return
            first = found.item.places.order_by("position").first()
            assert first is not None
            submit(found, user, "a" if is_sorry(first.trajectory) else "b")

    public, secret = KEYS.split(":")
    environment = {
        "TOUCHSTONE_PROJECT": "desk",
        "TOUCHSTONE_KEY": create_api_key(project=project, scopes=list(Scope.values))[1],
        "LANGFUSE_HOST": langfuse,
        "LANGFUSE_PUBLIC_KEY": public,
        "LANGFUSE_SECRET_KEY": secret,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # A request has a thread of its own, whose session has to end with it.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)
    with running_service() as service, in_a_thread(work_on_jobs), in_a_thread(annotate):
        service.state.deployments._load = StoredModels()
        settings.REWARDS_ADDRESSES = [service.url]
        with web_process() as url:
            monkeypatch.setenv("TOUCHSTONE_URL", url)
            laptop.main()
    printed = capsys.readouterr().out
    assert f"created={TRACES}" in printed and Trajectory.objects.count() == TRACES
    rewards = json.loads(printed.splitlines()[-1])
    newest = Trajectory.objects.order_by("-pk")[:10]
    by_kind = {True: list[float](), False: list[float]()}
    for row, reward in zip(newest, rewards, strict=True):
        by_kind[is_sorry(row)].append(reward)
    assert min(by_kind[True]) > max(by_kind[False])


def is_sorry(row: Trajectory) -> bool:
    return "sorry" in json.dumps(list(row.steps.values_list("message")))


@contextmanager
def web_process() -> Iterator[str]:
    config = uvicorn.Config(application, port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(30)


def test_the_script_is_short() -> None:
    assert laptop.__file__ is not None
    lines = Path(laptop.__file__).read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 40
