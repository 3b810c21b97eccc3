"""Runs on screens of other programs than OSWorld: what they saw, said and did, as their logs have it."""

import base64
import json

import pytest

from apps.trajectories import formats
from apps.trajectories.clicks import ClickMark, click_marks
from tests.trajectories.computer_use import documents
from tests.trajectories.computer_use.documents import DOCUMENTS, PNG
from tests.trajectories.reading import GENERAL, media, read_bytes, read_one, zipped
from tests.trajectories.real_files import comes_back
from workers.schema import ToolCall

PICTURE = base64.b64decode(PNG)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_is_claimed_by_one_format_and_comes_back(name: str) -> None:
    document = DOCUMENTS[name]
    claims = [format.name for format in formats.FORMATS.values() if format.sniff(document)]
    assert claims[0] == name and set(claims) <= {name, "openai", *GENERAL}  # the general ones are tried last
    assert comes_back(read_one(document))


def test_browser_use() -> None:
    run = read_one(documents.BROWSER_USE)
    seen, first, last = run.steps
    assert (seen.source, seen.observation[0].content[0].text) == ("environment", "Blank\nabout:blank")
    assert first.reasoning == "The page is empty."
    assert first.text.splitlines() == [
        *("evaluation previous goal: Nothing yet", "memory: none", "next goal: Open the shop"),
    ]
    assert [(call.name, call.arguments) for call in first.tool_calls] == [
        ("go_to_url", {"url": "https://shop.example"}),
        ("click_element_by_index", {"index": 5}),
    ]
    assert first.tool_calls[1].extra["interacted_element"] == {"tag_name": "a", "xpath": "html/a"}
    texts = [result.content[0].text for result in first.observation]
    assert texts == ["Navigated", "No element 5", "Shop\nhttps://shop.example"]
    assert first.metrics == {"input_tokens": 900, "seconds": 2.5}
    assert media(run) == ["data:image/png", "/runs/1/step_2.png"]
    assert last.tool_calls[0].arguments == {"text": "It costs 5.", "success": True}
    assert run.success is False  # by the judge, whatever the agent says
    assert run.metadata["judgement"]["failure_reason"] == "price"
    assert "Wrong price" not in json.dumps([part.text for step in run.steps for part in step.message])


def test_browser_use_keeps_what_a_step_without_an_answer_saw() -> None:
    failed = documents.BROWSER_USE["history"][0] | {"model_output": None, "result": [{"error": "429"}]}
    run = read_one({"task": "Buy it.", "history": [*documents.BROWSER_USE["history"][:1], failed]})
    assert [step.source for step in run.steps] == ["user", "environment", "agent"]
    assert [result.content[0].text for result in run.steps[2].observation][-1] == "429"
    assert run.task.instruction == "Buy it." and run.success is None


def test_webvoyager() -> None:
    run = read_one(documents.WEBVOYAGER)
    assert (run.task.instruction, run.task.metadata) == ("Find the price.", {"web": "https://shop.example/"})
    acted = [step for step in run.steps if step.source == "agent"]
    assert [(step.text, step.tool_calls[0].name, step.tool_calls[0].arguments) for step in acted] == [
        ("I search.", "type", {"element": "2", "text": "red shoes"}),
        ("I see it.", "answer", {"text": "It costs 5."}),
    ]
    assert acted[0].observation[0].content[0].text == "Observation: [2]: <input> search;"
    assert media(run) == []  # a placeholder is no picture


def test_webvoyager_takes_its_pictures_from_the_archive() -> None:
    raw = zipped(
        {
            "task--1/interact_messages.json": json.dumps(documents.WEBVOYAGER),
            "task--1/screenshot2.png": PICTURE,
            "task--1/screenshot1.png": PICTURE,
        }
    )
    (run,), refused, reader = read_bytes(raw)
    assert not refused and media(run) == ["data:image/png"] * 2 and not reader.dropped.counts


def test_webarena() -> None:
    run = read_one(documents.WEBARENA)
    assert [step.source for step in run.steps] == ["user", "environment", "agent", "agent"]
    assert (run.task.id, run.task.instruction, run.agent) == ("3", "Find the best product.", "gpt-4o")
    click, stop = (step.tool_calls[0] for step in run.steps[2:])
    assert (click.name, click.arguments) == ("click", {"action_type": 6, "element_id": "7"})
    assert (stop.name, stop.arguments) == ("stop", {"answer": "A band"})
    assert run.steps[2].text == "I open the report."
    assert run.steps[2].observation[0].content[0].text == "[2] table"
    assert media(run) == ["shots/0.png", "shots/1.png"]


def test_a_render_of_webarena_is_refused_once_with_what_to_do() -> None:
    page = b'<!DOCTYPE html>\n<html>\n<body><div class="state_obv">[1] RootWebArea</div></body>\n</html>\n'
    found, refused, _ = read_bytes(page)
    assert not found and len(refused) == 1
    assert "render_*.html" in refused[0].message


def test_mind2web() -> None:
    run = read_one(documents.MIND2WEB)
    user, seen, typed, clicked = run.steps
    assert (user.text, run.task.id, run.agent) == ("Search for shoes.", "a-1", "person")
    assert seen.observation[0].content[0].text == "<html><input></html>"
    call = typed.tool_calls[0]
    assert (call.name, call.arguments["value"], call.arguments["target"]) == (
        *("type", "shoes", "[textbox]  Search -> TYPE: shoes"),
    )
    assert click_marks([call], (), (1280, 4000)) == [ClickMark(10, 20, 200, 30)]
    assert clicked.tool_calls[0].name == "click"
    assert run.task.metadata == {"website": "shop", "domain": "Shopping", "subdomain": "General"}


def test_rows_of_multimodal_mind2web_are_one_run_an_annotation() -> None:
    around = {key: documents.MIND2WEB[key] for key in ("annotation_id", "confirmed_task", "action_reprs")}
    rows = [
        around
        | action  # type: ignore[operator]
        | {"operation": json.dumps(action["operation"]), "target_action_index": str(place)}
        | {"pos_candidates": [json.dumps(each) for each in action["pos_candidates"]], "screenshot": PNG}
        for place, action in enumerate(documents.MIND2WEB["actions"])  # type: ignore[var-annotated, arg-type]
    ]
    other = [row | {"annotation_id": "a-2"} for row in rows]
    raw = "\n".join(json.dumps(row) for row in [rows[1], rows[0], *other]).encode()
    (first, second), refused, _ = read_bytes(raw)
    assert not refused and (first.id, second.id) == ("a-1", "a-2")
    assert [step.tool_calls[0].name for step in first.steps if step.tool_calls] == ["type", "click"]
    assert media(first) == ["data:image/png"] * 2
    assert first.steps[2].tool_calls[0].arguments["bbox"] == [10, 20, 200, 30]


def test_online_mind2web() -> None:
    run = read_one(documents.ONLINE_MIND2WEB)
    acted = [step for step in run.steps if step.source == "agent"]
    assert [step.text for step in acted] == ["I open the menu.", "I search.", "", "It is open."]
    assert [(call.name, call.arguments) for step in acted for call in step.tool_calls] == [
        ("click", {"element": '<button id="a">'}),
        ("type", {"element": "<input>", "value": "shoes"}),
        ("act", {"action": "Looked around"}),
    ]
    assert media(run) == ["0.png", "1.png", "2.png", "3.png"]
    assert (run.task.id, run.task.instruction) == ("fb7b", "Open the overview.")


def test_online_mind2web_takes_its_pictures_from_the_folder_next_to_it() -> None:
    named = {key: value for key, value in documents.ONLINE_MIND2WEB.items() if key != "input_image_paths"}
    files: dict[str, bytes | str] = {"fb7b/result.json": json.dumps(named)}
    files |= {
        f"fb7b/trajectory/{number}_screenshot.png": PICTURE + bytes([number]) for number in (10, 9, 2, 0)
    }
    (run,), _, reader = read_bytes(zipped(files))
    seen = [
        part.source
        for step in run.steps
        for result in step.observation
        for part in result.content
        if part.source
    ]
    ends = [base64.b64decode(source.partition(",")[2])[-1] for source in seen]
    assert ends == [0, 2, 9, 10] and not reader.dropped.counts


def test_agentnet() -> None:
    run = read_one(documents.AGENTNET)
    user, seen, clicked, ended = run.steps
    assert (user.text, run.task.id, run.success) == ("Turn on night light.", "t-1", True)
    assert (clicked.text, clicked.reasoning) == ("Click the corner.", "A desktop.\n\nI open the menu.")
    assert click_marks(clicked.tool_calls, (), (10000, 10000)) == [ClickMark(9722, 9701)]
    assert ended.tool_calls[0].arguments == {"code": "computer.terminate(status='success')"}
    assert seen.observation[0].content[0].source == "0.png"
    assert "last_step_correct" not in json.dumps([step.text for step in run.steps])
    assert clicked.extra["value"] == {"last_step_correct": True, "reflection": "None yet."}


def test_android_control() -> None:
    run = read_one(documents.ANDROID)
    _, seen, acted = run.steps
    assert seen.observation[0].content[0].text == '{"text": "8:37", "is_visible": true}'
    assert (acted.text, acted.tool_calls[0].arguments) == ("Click on the app", {"x": 313, "y": 742})
    assert media(run) == ["7/0.png", "7/1.png"]
    assert (run.task.id, run.task.instruction) == ("7", "Open the app.")


def test_android_in_the_wild_is_a_row_a_step() -> None:
    rows = [documents.WILD_ROW, documents.WILD_ROW | {"step_id": 1, "results/yx_touch": [-1.0, -1.0]}]
    raw = "\n".join(json.dumps(row) for row in [*rows, rows[0] | {"episode_id": "e-2"}]).encode()
    (run, _), refused, _ = read_bytes(raw)
    assert not refused
    first, second = (step.tool_calls[0] for step in run.steps if step.tool_calls)
    assert (first.name, first.arguments["start_coordinate"]) == ("dual_point_gesture", [0.5, 0.75])
    assert "start_coordinate" not in second.arguments
    assert click_marks([first], (), (100, 200)) == [ClickMark(50, 150)]
    assert run.steps[1].observation[0].content[0].text == "TEXT Oct [0.07, 0.12, 0.01, 0.08]"
    assert media(run) == ["data:image/png"] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"coordinate_x": 5, "coordinate_y": 6},
        {"start_x": 5, "start_y": 6, "end_x": 50, "end_y": 60},
        {"position": {"x": 5, "y": 6}},
        {"mouse_position": {"width": 5, "height": 6}},
        {"path": [{"x": 5, "y": 6}, {"x": 50, "y": 60}]},
    ],
)
def test_clicks_are_drawn_under_the_names_that_programs_use(arguments: dict[str, object]) -> None:
    assert click_marks([ToolCall(name="click", arguments=arguments)], (), (100, 100)) == [ClickMark(5, 6)]
