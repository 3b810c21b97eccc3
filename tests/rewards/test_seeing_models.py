"""Red and blue screenshots over HTTP: rewards differ with a model that sees, and are flagged with one that does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from apps.accounts.models import Project
from apps.trajectories.services import store_trajectories
from tests.picture_files import BLUE, RED, coloured, data_url, file_of, png_bomb
from tests.rewards.conftest import Service, serve_stored
from tests.rewards.wire.score_calls import score_results
from workers import schema
from workers.models import Lineage, build, save
from workers.schema.recipe import Recipe

pytestmark = pytest.mark.ml

Json = dict[str, Any]
ANSWER = {"role": "assistant", "content": "The page is done."}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By `image_encoder` a model with random weights."""
    found = {}
    for name in ("", "embedded"):
        torch.manual_seed(7)
        recipe = Recipe(width=16, attention_heads=2, ensemble=1, max_tokens=400, image_encoder=name)
        model = build(recipe)
        folder = found[name] = tmp_path_factory.mktemp("artifact") / "model"
        folder.mkdir()
        save(model, folder, recipe=recipe, reward={"median": 0.0, "std": 1.0}, criteria={}, lineage=Lineage())
    return found


@pytest.fixture
def seeing(service: Service, project: Project, key: str, folders: dict[str, Path]) -> str:
    return serve_stored(service, project, folders["embedded"], "seeing")


def url(colour: tuple[int, int, int]) -> str:
    return data_url(file_of(coloured(colour)))


def with_picture(part: Json) -> Json:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look:"}, part]}, ANSWER]}


SPELLINGS: dict[str, Callable[[str], Json]] = {
    "OpenAI chat": lambda source: with_picture({"type": "image_url", "image_url": {"url": source}}),
    "OpenAI responses": lambda source: with_picture({"type": "input_image", "image_url": source}),
    "Anthropic": lambda source: with_picture(
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": source.partition(",")[2]},
        }
    ),
    "Gemini": lambda source: with_picture(
        {"inlineData": {"mimeType": "image/png", "data": source.partition(",")[2]}}
    ),
    "image": lambda source: with_picture({"type": "image", "image": source}),
    "tool result": lambda source: {
        "messages": [
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": [{"type": "image_url", "image_url": {"url": source}}],
            },
            ANSWER,
        ]
    },
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_red_and_blue_differ_and_nothing_is_flagged(http: httpx.Client, seeing: str, name: str) -> None:
    red, blue, again = score_results(
        http, seeing, *(SPELLINGS[name](url(colour)) for colour in (RED, BLUE, RED))
    )
    assert red["reward"] == pytest.approx(again["reward"], abs=1e-6)
    assert abs(red["reward"] - blue["reward"]) > 1e-4
    assert "unread:image" not in (*red["flags"], *blue["flags"])


def test_where_no_model_sees_the_flag_says_so(
    service: Service, project: Project, http: httpx.Client, key: str, folders: dict[str, Path]
) -> None:
    blind = serve_stored(service, project, folders[""], "blind")
    bodies = [SPELLINGS["OpenAI chat"](url(colour)) for colour in (RED, BLUE)]
    red, blue = score_results(http, blind, *bodies)
    assert red["reward"] == pytest.approx(blue["reward"], abs=1e-6)
    assert red["flags"] == blue["flags"] == ["unread:image"]


def test_an_address_is_flagged_and_not_fetched(http: httpx.Client, seeing: str) -> None:
    (found,) = score_results(http, seeing, SPELLINGS["OpenAI chat"]("http://127.0.0.1:9/a.png"))
    assert found["flags"] == ["unread:image"]
    (hashed,) = score_results(http, seeing, SPELLINGS["image"]("sha256:" + "0" * 64))
    assert hashed["flags"] == ["unread:image"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (data_url(b"hello"), "cannot be read as any of png, jpeg, gif, webp"),
        (data_url(png_bomb(60_000, 60_000)), "60000 x 60000 pixels, and the limit is 50 million"),
        (data_url(png_bomb(9, 9)), "damaged"),
        ("data:image/png;base64,****", "not base64"),
    ],
)
def test_hostile_pictures_are_refused_with_the_place(
    http: httpx.Client, seeing: str, source: str, told: str
) -> None:
    bodies = [SPELLINGS["OpenAI chat"](url(RED)), SPELLINGS["OpenAI chat"](source)]
    reply = http.post(f"/api/v1/rewards/{seeing}/score", json={"inputs": bodies})
    assert reply.status_code == 422, reply.text
    assert told in reply.text
    assert reply.json()["pointer"].startswith("/inputs/1")


def test_a_stored_trajectory_is_scored_with_its_pictures(
    http: httpx.Client, seeing: str, project: Project
) -> None:
    sent = SPELLINGS["OpenAI chat"](url(RED))
    trajectory = schema.Trajectory(
        steps=schema.from_messages(sent["messages"]), task=schema.Task(id="t", instruction="Look.")
    )
    store_trajectories(project=project, trajectories=[trajectory], source_format="openai")
    stored, direct = score_results(http, seeing, {"trajectory_id": str(project.trajectories.get().pk)}, sent)
    assert stored["reward"] == pytest.approx(direct["reward"], abs=1e-5)
    assert stored["flags"] == []
