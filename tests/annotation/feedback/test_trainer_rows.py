"""Rows of trainers' data sets: prompts as TRL finds them, images, system text and scores; the rest is named."""

import ast
import base64
import importlib.util
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from apps.annotation.feedback.incoming import Found, Incoming, UnreadField
from apps.annotation.feedback.readers import READERS
from tests.annotation.feedback.test_round_trips import PIXEL
from workers.errors import InvalidRecord
from workers.schema import Trajectory

ASK = {"role": "user", "content": "What color is the sky?"}
BLUE, GREEN = ({"role": "assistant", "content": f"It is {color}."} for color in ("blue", "green"))


def read(row: dict[str, Any], format: str = "trl") -> list[Found]:
    return [found for _, found in READERS[format](io.BytesIO(json.dumps(row).encode()))]


def sides(row: dict[str, Any], format: str = "trl") -> list[Trajectory]:
    (incoming,) = (found for found in read(row, format) if isinstance(found, Incoming))
    return [place for place in incoming.places if isinstance(place, Trajectory)]


def texts(row: dict[str, Any], format: str = "trl") -> list[list[tuple[str, str]]]:
    return [[(step.source, step.text) for step in side.steps] for side in sides(row, format)]


def unread(row: dict[str, Any], format: str = "trl") -> dict[str, str]:
    return {found.path: found.use for found in read(row, format) if isinstance(found, UnreadField)}


@pytest.mark.parametrize(
    "row",
    [
        {"chosen": [ASK, BLUE], "rejected": [ASK, GREEN]},
        {"prompt": [ASK], "chosen": [BLUE], "rejected": [GREEN]},
        {"prompt": [ASK], "chosen": [ASK, BLUE], "rejected": [ASK, GREEN]},
        {"prompt": ASK["content"], "chosen": [ASK, BLUE], "rejected": [ASK, GREEN]},
        {"prompt": ASK["content"], "chosen": [BLUE], "rejected": [GREEN]},
        {"prompt": ASK["content"], "chosen": BLUE["content"], "rejected": GREEN["content"]},
        {
            "prompt": ASK["content"],
            "chosen": ASK["content"] + BLUE["content"],
            "rejected": ASK["content"] + GREEN["content"],
        },
    ],
)
def test_the_prompt_stands_once_wherever_it_is_written(row: dict[str, Any]) -> None:
    asked = ("user", "What color is the sky?")
    assert texts(row) == [[asked, ("agent", "It is blue.")], [asked, ("agent", "It is green.")]]
    assert len({side.task.id for side in sides(row)}) == 1
    assert unread(row) == {}


def test_a_system_message_before_the_repeated_prompt_is_part_of_it() -> None:
    system = {"role": "system", "content": "Be brief."}
    row = {
        "prompt": "What color is the sky?",
        "chosen": [system, ASK, BLUE],
        "rejected": [system, ASK, GREEN],
    }
    assert [source for source, _ in texts(row)[0]] == ["system", "user", "agent"]
    alone = {
        "prompt": "What color is the sky?",
        "system": "Be brief.",
        "chosen": "Blue.",
        "rejected": "Green.",
    }
    assert texts(alone)[0][:2] == [("system", "Be brief."), ("user", "What color is the sky?")]
    assert unread(alone) == {}


def _extract_prompt_of_trl() -> Callable[[dict[str, str]], dict[str, str]]:
    """The function alone: to import TRL takes many seconds."""
    spec = importlib.util.find_spec("trl")
    if spec is None or spec.origin is None:
        pytest.skip("TRL is not installed")
    tree = ast.parse((Path(spec.origin).parent / "data_utils.py").read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", "") == "extract_prompt"]
    names: dict[str, Any] = {"Sequence": Sequence}
    exec(compile(tree, spec.origin, "exec"), names)
    found: Callable[[dict[str, str]], dict[str, str]] = names["extract_prompt"]
    return found


@pytest.mark.parametrize(
    ("chosen", "rejected"),
    [("The sky is blue.", "The sky is green."), ("ab", "ac"), ("one two", "one two three"), ("xy", "zw")],
)
def test_the_prompt_within_texts_is_that_of_trl(chosen: str, rejected: str) -> None:
    expected = _extract_prompt_of_trl()({"chosen": chosen, "rejected": rejected})
    found = texts({"chosen": chosen, "rejected": rejected})
    prompt = [("user", expected["prompt"])] if expected["prompt"] else []
    assert found == [[*prompt, ("agent", expected[name])] for name in ("chosen", "rejected")]


def test_texts_with_unlike_prompts_are_unlike_tasks() -> None:
    rows = [("Hi! Yes", "Hi! No"), ("Bye! Yes", "Bye! No"), ("a", "b"), ("c", "d")]
    tasks = {sides({"chosen": chosen, "rejected": rejected})[0].task.id for chosen, rejected in rows}
    assert len(tasks) == len(rows)


def test_parts_of_a_prompt_are_its_task() -> None:
    prompt = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, {"type": "image"}]}]
    (side, _) = sides({"prompt": prompt, "chosen": "A dot.", "rejected": "A line.", "images": [PIXEL]})
    assert side.task.instruction == "What is it?"
    assert side.steps[0].message[1].source == PIXEL


@pytest.mark.parametrize(
    "image",
    [PIXEL, {"bytes": PIXEL.partition(",")[2], "path": "dot.png"}, {"bytes": None, "path": "dot.png"}],
)
def test_images_of_a_text_prompt(image: Any) -> None:
    row = {"prompt": "What is it?", "chosen": "A dot.", "rejected": "A line.", "images": [image]}
    part, text = sides(row)[0].steps[0].message
    assert (part.type, part.source) == (
        "image",
        "dot.png" if isinstance(image, dict) and not image["bytes"] else PIXEL,
    )
    assert text.text == "What is it?"
    assert unread(row) == {}


def test_an_image_within_a_part_and_bytes_that_are_none() -> None:
    data = base64.b64encode(b"no image").decode()
    for content, pointer in (
        ({"prompt": "Q", "images": [{"bytes": data}]}, "/images/0/bytes"),
        ({"prompt": "Q", "images": 5}, "/images"),
    ):
        (error,) = read(content | {"chosen": "A", "rejected": "B"})
        assert isinstance(error, InvalidRecord) and error.pointer == pointer
    part = {"type": "image", "image": {"bytes": PIXEL.partition(",")[2], "path": None}}
    row = {"prompt": [{"role": "user", "content": [part]}], "chosen": "A", "rejected": "B"}
    assert sides(row)[0].steps[0].message[0].source == PIXEL


def test_scores_are_kept_and_other_columns_named() -> None:
    row = {
        "prompt": "Q",
        "chosen": "A",
        "rejected": "B",
        "score_chosen": 8.5,
        "score_rejected": 3,
        "source": "web",
    }
    assert [side.metadata for side in sides(row)] == [
        {"score_chosen": 8.5, "source": "web"},
        {"score_rejected": 3, "source": "web"},
    ]
    assert unread(row) == {"/score_chosen": "kept", "/score_rejected": "kept", "/source": "kept"}
    row = {"prompt": "Q", "completion": "QA", "label": True, "lang": "en"}
    assert texts(row, "trl-unpaired") == [[("user", "Q"), ("agent", "A")]]
    assert unread(row, "trl-unpaired") == {"/lang": "kept"}


def test_deep_json_in_a_column_stops_no_import() -> None:
    row = {"prompt": [ASK], "chosen": [BLUE], "rejected": [GREEN]}
    assert unread(row | {"mood": "[" * 600 + "1" + "]" * 600}) == {"/mood": "kept"}
    for found in read(row | {"record": "[" * 5000 + "]" * 5000}):
        assert isinstance(found, InvalidRecord) or not isinstance(found, Incoming)
