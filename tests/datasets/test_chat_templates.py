"""What the exports for trainers look like in every chat template that TRL ships, after `datasets` has read them."""

import importlib.util
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.datasets.exports import EXPORTS
from tests.datasets.feedback import freeze, import_pairs

pytestmark = pytest.mark.ml

Messages = list[dict[str, Any]]
TRL = importlib.util.find_spec("trl")
TEMPLATES = sorted(Path(TRL.origin).parent.glob("chat_templates/*.jinja")) if TRL and TRL.origin else []
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5E"
    "rkJggg=="
)
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SYSTEM = {"role": "system", "content": "You are a clerk."}
ASK = {"role": "user", "content": "Do I need an umbrella in Ulm?"}


def agent_message(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def called(
    name: str, arguments: dict[str, Any], id: str = "c1", text: str = "", **fields: Any
) -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return agent_message(text, tool_calls=[call], **fields)


def result(name: str, content: str, id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "name": name, "content": content}


# As a trainer would write them by hand: the prompt, the chosen and the rejected answer, tools.
LOOK = [called("weather", {"city": "Ulm"}), result("weather", '{"rain": true}')]
GUESS = [called("guess", {"odds": 0.5, "n": 3, "of": ["a"]}), result("guess", "1")]
THINK = [called("weather", {}, reasoning_content="Look."), result("weather", "3"), agent_message("Yes.")]
TURNS = [ASK, agent_message("Which Ulm?"), {"role": "user", "content": "The big one."}]
SHELL = [called("shell", {"__raw__": "curl wttr.in"}), result("shell", "rain")]
CONVERSATIONS: dict[str, tuple[Messages, Messages, Messages, list[Any]]] = {
    "plain": ([SYSTEM, ASK], [agent_message("Yes.")], [agent_message("No.")], []),
    "turns": (TURNS, [agent_message("Yes.")], [agent_message("?")], []),
    "tools": ([ASK, *LOOK], [agent_message("Yes, it rains.")], [agent_message("No.")], [WEATHER]),
    "calls": ([ASK], [*LOOK, agent_message("Yes.")], GUESS, []),
    "thoughts": (
        [ASK],
        [agent_message("Yes.", reasoning_content="It rains there.")],
        [agent_message("Yes.")],
        [],
    ),
    "thoughts and calls": ([ASK], THINK, [agent_message("No.")], [WEATHER]),
    "arguments that are no object": ([ASK], SHELL, [agent_message("No.")], []),
}


def compared(task: str, a: Messages, b: Messages, *, choice: str = "a", tools: Any = None) -> dict[str, Any]:
    stated = {"metadata": {"tools": tools}} if tools else {}
    sides = {"a": {"messages": a} | stated, "b": {"messages": b} | stated}
    return {"task": {"id": task, "instruction": task}, "choice": choice, "annotator": "ann"} | sides


def as_sent(messages: Messages) -> Messages:
    """As an OpenAI client records them: arguments as text."""
    out = json.loads(json.dumps(messages))
    for message in out:
        for call in message.get("tool_calls", ()):
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = arguments.get("__raw__") or json.dumps(arguments)
        if message["role"] == "tool":
            del message["name"]
    return out


def pairs() -> list[dict[str, Any]]:
    return [
        compared(task, as_sent([*prompt, *chosen]), as_sent([*prompt, *rejected]), tools=tools)
        for task, (prompt, chosen, rejected, tools) in CONVERSATIONS.items()
    ]


def loaded(project: Project, format: str, folder: Path) -> list[dict[str, Any]]:
    """The rows as `datasets` reads the file; `datasets` fills columns that a row has not with None."""
    datasets = pytest.importorskip("datasets")
    path = folder / f"{format}.jsonl"
    path.write_text(
        "".join(EXPORTS[format](freeze(project, f"{format}-set"), None, Counter())), encoding="utf-8"
    )
    read = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder / "cache"))
    return [{key: value for key, value in row.items() if value is not None} for row in read]


@cache
def environment() -> Any:
    from transformers.utils.chat_template_utils import _compile_jinja_template

    return _compile_jinja_template


def rendered(template: str, messages: Messages, tools: list[Any] | None) -> str:
    """The text, or the error that the template raises."""
    try:
        compiled = environment()(template)
        # The database does not keep the order of keys.
        messages, tools = json.loads(json.dumps([messages, tools], sort_keys=True))
        return str(compiled.render(messages=messages, tools=tools or None, bos_token="<s>", eos_token="</s>"))
    except Exception as error:  # templates raise all kinds where they are not made for a conversation
        return f"{type(error).__name__}: {error}"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("format", ["trl", "openrlhf", "trl-unpaired"])
def test_every_template_shows_what_was_written_by_hand(project: Project, format: str, tmp_path: Path) -> None:
    import_pairs(project, pairs())
    rows = loaded(project, format, tmp_path)
    expected: list[tuple[Messages, list[Any]]] = []
    found: list[tuple[Messages, list[Any]]] = []
    for prompt, chosen, rejected, tools in CONVERSATIONS.values():
        expected += [([*prompt, *chosen], tools), ([*prompt, *rejected], tools)]
    for row in rows:
        prompt, tools = row.get("prompt", []), row.get("tools", [])
        sides = ("chosen", "rejected", "completion", "chosen_messages", "rejected_messages")
        found += [(prompt + row[side], tools) for side in sides if side in row]
    by_text = {json.dumps(conversation, sort_keys=True): conversation for conversation in found}
    assert by_text.keys() == {json.dumps(conversation, sort_keys=True) for conversation in expected}
    assert len(TEMPLATES) >= 70
    raising = Counter[str]()
    for path in TEMPLATES:
        template = path.read_text(encoding="utf-8")
        for messages, tools in expected:
            ours = by_text[json.dumps((messages, tools), sort_keys=True)]
            by_hand = rendered(template, messages, tools)
            assert rendered(template, *ours) == by_hand, (path.name, messages)
            raising[path.name] += by_hand.startswith(("TemplateError", "UndefinedError", "TypeError"))
    assert sum(raising.values()) < 0.12 * len(TEMPLATES) * len(expected), raising


@pytest.mark.usefixtures("offline")
def test_images_are_columns_that_trl_and_its_processors_take(project: Project, tmp_path: Path) -> None:
    from transformers.image_utils import load_image
    from trl.data_utils import prepare_multimodal_messages

    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    look: Messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]}]
    seen = [{"role": "assistant", "content": [picture, {"type": "text", "text": "This."}]}]
    json_like: Messages = [{"role": "user", "content": '{"what": 1}'}]
    import_pairs(
        project,
        [
            compared("x", [*look, agent_message("A dot.")], [*look, *seen]),
            compared("y", [*json_like, agent_message("A.")], [*json_like, agent_message("B.")], choice="b"),
            # The sides differ in a picture only, which no text column shows.
            compared("z", [*json_like, *seen], [*json_like, agent_message("[image]\nThis.")]),
        ],
    )
    rows = {row["chosen"][0]["content"]: row for row in loaded(project, "trl", tmp_path)}
    assert rows.keys() == {"A dot.", "B."}
    assert rows["B."]["prompt"] == [{"role": "user", "content": [{"type": "text", "text": '{"what": 1}'}]}]
    row = rows["A dot."]
    assert row["rejected"] == [{"role": "assistant", "content": "[image]\nThis."}]
    images = [load_image(image) for image in row["images"]]
    assert [image.size for image in images] == [(1, 1)]
    (ready,) = prepare_multimodal_messages(row["prompt"], images=images)
    assert [part["type"] for part in ready["content"]] == ["text", "image"]
    left_out: Counter[str] = Counter()
    list(EXPORTS["trl"](freeze(project, "counted"), None, left_out))
    assert left_out == {"images named in the text": 2, "pairs whose sides are written alike": 1}


@pytest.mark.usefixtures("offline")
def test_differences_that_come_late_are_read_as_written(project: Project, tmp_path: Path) -> None:
    """More than `datasets` looks at for the types: what comes later has calls, other arguments, other types."""
    datasets = pytest.importorskip("datasets")
    plain = [
        compared(f"p{n}", [ASK, agent_message(f"Yes {n}.")], [ASK, agent_message("No.")]) for n in range(60)
    ]
    import_pairs(project, plain + pairs())
    lines = list(EXPORTS["trl"](freeze(project), None, Counter()))
    path = tmp_path / "late.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    size = sum(len(line) for line in lines[:12])
    assert size < 0.5 * path.stat().st_size
    read = datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"), chunksize=size
    )
    rows = [{key: value for key, value in row.items() if value is not None} for row in read]
    for row, line in zip(rows, map(json.loads, lines), strict=True):
        assert row.pop("margin") == pytest.approx(line.pop("margin"))  # `datasets` rounds to ten digits
        assert row == line
