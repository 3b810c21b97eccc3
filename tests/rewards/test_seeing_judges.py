"""Judges of an endpoint that are shown pictures: red and blue differ, and what was not seen is flagged."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from apps.judges.models import Judge
from apps.llm.models import LLMConnection
from apps.trajectories.services import store_trajectories
from tests.picture_files import BLUE, RED, coloured, data_url, file_of
from tests.rewards.conftest import Service
from tests.rewards.judged import PART, ask, judge_of, model_at, serve
from tests.workers.llm.scripted import Script, scripted
from tests.workers.llm.seeing import pictures_of, scored_by_colour
from workers import schema

Json = dict[str, Any]


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(scored_by_colour)


@pytest.fixture
def llm_connection(project: Project, script: Script) -> Iterator[LLMConnection]:
    with scripted(script) as url:
        yield model_at(project, url, reads_pictures=True, max_pictures=2)


@pytest.fixture
def judge(project: Project, llm_connection: LLMConnection) -> Judge:
    return judge_of(project, llm_connection)


@pytest.fixture
def endpoint(service: Service, project: Project, judge: Judge, key: str) -> str:
    return serve(service, project, PART)


def looks(*colours: tuple[int, int, int]) -> Json:
    pictures = [
        {"type": "image_url", "image_url": {"url": data_url(file_of(coloured(colour)))}} for colour in colours
    ]
    content = [{"type": "text", "text": "Look:"}, *pictures]
    return {"messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "Done."}]}


def scored(http: httpx.Client, endpoint: str, *inputs: Json) -> list[Json]:
    reply = ask(http, endpoint, "critique", *inputs)
    assert reply.status_code == 200, reply.text
    return reply.json()["results"]


def test_red_and_blue_differ_at_once(http: httpx.Client, endpoint: str, script: Script) -> None:
    """Asked together, of equal text: neither gets the other's answer."""
    red, blue = scored(http, endpoint, looks(RED), looks(BLUE))
    assert red["reward"] < blue["reward"] and red["flags"] == blue["flags"] == []
    assert "Pictures: 1 seen." in red["critiques"]["parcels"]
    assert len(script.asked) == 2


def test_what_is_left_out_is_flagged_and_in_the_critique(
    http: httpx.Client, endpoint: str, script: Script
) -> None:
    (found,) = scored(http, endpoint, looks(BLUE, RED, BLUE))
    assert found["flags"] == ["judge_pictures_cut"]
    assert "Pictures: 2 of 3 seen, the others left out." in found["critiques"]["parcels"]
    assert [label["number"] for label, _ in pictures_of(script.asked[0])] == [1, 3]


def test_a_judge_that_sees_nothing_says_so(
    http: httpx.Client, endpoint: str, llm_connection: LLMConnection, script: Script
) -> None:
    LLMConnection.objects.filter(pk=llm_connection.pk).update(reads_pictures=False)
    red, blue = scored(http, endpoint, looks(RED), looks(BLUE))
    assert red["reward"] == blue["reward"] and red["flags"] == blue["flags"] == ["unread:image"]
    assert "Pictures: 1 not seen." in red["critiques"]["parcels"]
    assert not any(pictures_of(body) for body in script.asked)


def test_a_stored_trajectory_is_judged_with_its_pictures(
    http: httpx.Client, endpoint: str, project: Project, script: Script
) -> None:
    trajectory = schema.Trajectory(
        steps=schema.from_messages(looks(RED)["messages"]), task=schema.Task(id="t", instruction="Look.")
    )
    store_trajectories(project=project, trajectories=[trajectory], source_format="openai")
    (found,) = scored(http, endpoint, {"trajectory_id": str(project.trajectories.get().pk)})
    assert found["flags"] == [] and len(pictures_of(script.asked[0])) == 1


def test_a_damaged_picture_is_the_callers(http: httpx.Client, endpoint: str, script: Script) -> None:
    bad = looks(RED)
    bad["messages"][0]["content"][1]["image_url"]["url"] = data_url(b"no picture")
    reply = ask(http, endpoint, "score", bad)
    assert reply.status_code == 422 and "cannot be read as any of png" in reply.text
    assert not script.asked
