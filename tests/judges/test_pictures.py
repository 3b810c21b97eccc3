"""Judge runs about trajectories with pictures: seen or not, and what the pages and the spending say of it."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Project, User
from apps.judges import services
from apps.judges.models import Judge, JudgeRun
from apps.llm.models import LLMConnection, Spending
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.trajectories.models import Trajectory
from apps.trajectories.services import store_trajectories
from tests.judges import parcels
from tests.judges.parcels import done
from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from tests.workers.llm.scripted import Script, scripted
from tests.workers.llm.seeing import PICTURE_TOKENS, pictures_of, scored_by_colour
from workers import schema

pytestmark = [pytest.mark.ml, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def seeing_script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(scored_by_colour)


@pytest.fixture
def address(seeing_script: Script) -> Iterator[str]:
    with scripted(seeing_script) as url:
        yield url


def judge_at(project: Project, address: str, name: str = "eyes", **given: Any) -> Judge:
    spec = LLMConnectionSpec(name=name, base_url=address, model="seeing", **given)
    connection = create_llm_connection(project=project, spec=spec, key="", by=None)
    return parcels.judge(connection, name)


def store(project: Project, colour: tuple[int, int, int], pictures: int = 1) -> Trajectory:
    url = data_url(file_of(coloured(colour)))
    steps = []
    for number in range(pictures):
        parts = (schema.Part(text=f"Look {number}."), schema.Part(type="image", source=url))
        steps += [
            schema.Step(source="user", message=parts),
            schema.Step(source="agent", message=(schema.Part(text="Done."),)),
        ]
    trajectory = schema.Trajectory(steps=tuple(steps), task=schema.Task(id="page", instruction="Make it."))
    store_trajectories(project=project, trajectories=[trajectory], source_format="openai")
    return project.trajectories.latest("pk")


def run_on(judge: Judge, *trajectories: Trajectory) -> JudgeRun:
    judge_run = done(services.start_test_run(judge=judge, trajectories=trajectories))
    assert judge_run.state == "succeeded", judge_run.error
    return judge_run


def page_of(client: Client, judge_run: JudgeRun) -> str:
    path = f"/p/{judge_run.judge.project.slug}/judge-runs/{judge_run.pk}/"
    return " ".join(client.get(path).content.decode().split())


@pytest.mark.real_children
def test_stored_pictures_are_seen_and_said_to_be(
    project: Project, address: str, seeing_script: Script, client: Client, owner: User
) -> None:
    judge = judge_at(project, address, reads_pictures=True, max_pictures=4)
    judge_run = run_on(judge, store(project, RED), store(project, BLUE, 6))
    few, many = judge_run.results.order_by("pk")
    assert (few.answer[0]["value"], many.answer[0]["value"]) == (4, 5)
    assert few.pictures == {"shown": 1, "total": 1} and many.pictures == {"shown": 4, "total": 6}
    assert sorted(len(pictures_of(body)) for body in seeing_script.asked) == [1, 4]
    assert judge_run.result["pictures"] == {"shown": 5, "total": 7}
    client.force_login(owner)
    page = page_of(client, judge_run)
    assert "Pictures: 5 of 7 seen, the others left out." in page and "A call has at most 4" in page
    assert "Pictures: 1 seen." in page and "Pictures: 4 of 6 seen" in page
    detail = client.get(f"/p/{project.slug}/judges/{judge.pk}/").content.decode()
    assert "up to 4 per call" in detail


def test_without_pictures_the_answer_and_the_page_say_so(
    project: Project, address: str, seeing_script: Script, client: Client, owner: User
) -> None:
    judge = judge_at(project, address)
    judge_run = run_on(judge, store(project, RED), store(project, BLUE, 2))
    red, blue = judge_run.results.order_by("pk")
    assert red.answer[0]["value"] == blue.answer[0]["value"] == 5
    assert (red.pictures, blue.pictures) == ({"shown": 0, "total": 1}, {"shown": 0, "total": 2})
    assert not any(pictures_of(body) for body in seeing_script.asked)
    client.force_login(owner)
    page = page_of(client, judge_run)
    assert "Pictures: 3 not seen. The LLM connection does not read pictures" in page
    assert "Pictures: 1 not seen." in page
    assert (
        "not seen: the LLM connection" in client.get(f"/p/{project.slug}/judges/{judge.pk}/").content.decode()
    )


def test_pictures_cost_what_the_server_counts(project: Project, address: str) -> None:
    judge = judge_at(
        project,
        address,
        reads_pictures=True,
        prompt_price=Decimal(10),
        completion_price=Decimal(20),
        monthly_limit=Decimal(100),
    )
    run_on(judge, store(project, BLUE, 3))
    spent = Spending.objects.get()
    counted = 10 + 3 * PICTURE_TOKENS
    assert (spent.purpose, spent.calls, spent.prompt_tokens) == ("judging", 1, counted)
    assert spent.cost == (counted * Decimal(10) + 5 * Decimal(20)) / 1_000_000


def test_a_budget_that_the_pictures_could_exceed_stops_the_run(
    project: Project, address: str, seeing_script: Script
) -> None:
    """A picture reserves what the connection says: 8 of 100,000 tokens at 10 a million cost up to 8."""
    given: Any = {"prompt_price": Decimal(10), "completion_price": Decimal(0), "monthly_limit": Decimal(1)}
    judge = judge_at(project, address, reads_pictures=True, picture_tokens=100_000, **given)
    trajectory = store(project, BLUE, 8)
    judge_run = done(services.start_test_run(judge=judge, trajectories=[trajectory]))
    assert judge_run.state == "failed" and "monthly budget" in judge_run.error
    assert not seeing_script.asked
    LLMConnection.objects.update(picture_tokens=1600)
    assert run_on(judge, trajectory).results.get().answer
