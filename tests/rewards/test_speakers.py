"""Names in scored messages: models that read them answer otherwise, for others the flag says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import Project
from tests.rewards.conftest import Service, serve_stored
from tests.rewards.wire.score_calls import score_results
from tests.workers.models.linear_models import linear_model, save_linear
from workers.schema import Task, Trajectory, from_messages
from workers.text import StepTextRenderer, template_fingerprint

pytestmark = pytest.mark.ml


def messages(*names: str) -> list[dict[str, Any]]:
    asked = {"role": "user", "content": "Where is the order?"}
    texts = ("It was sent.", "Nothing is left to do.")
    said = zip(names, texts, strict=False)
    return [asked, *({"role": "assistant", "name": name, "content": text} for name, text in said)]


def trajectory(*names: str) -> Trajectory:
    return Trajectory(steps=from_messages(messages(*names)), task=Task(id="t"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    known = [trajectory("planner", "clerk"), trajectory("clerk", "planner")]
    return save_linear(linear_model(known), tmp_path / "model")


def test_a_model_of_now_reads_them(http, service: Service, project: Project, folder: Path) -> None:
    name = serve_stored(service, project, folder, "speakers")
    items = [{"messages": messages(*names)} for names in (("planner", "clerk"), ("clerk", "planner"))]
    first, second = score_results(http, name, *items)
    assert abs(first["reward"] - second["reward"]) > 1e-3
    assert "unread:speaker" not in first["flags"] + second["flags"]
    (asked,) = score_results(
        http, name, {"messages": [messages("planner")[0] | {"name": "ann"}, *messages("clerk")[1:]]}
    )
    assert "unread:speaker" in asked["flags"]  # a linear model reads what agents wrote


def test_a_model_of_before_does_not_and_the_flag_says_so(
    http, service: Service, project: Project, folder: Path
) -> None:
    path = folder / "touchstone.json"
    manifest = json.loads(path.read_text())
    del manifest["text"]["speakers"]
    manifest["template_fingerprint"] = template_fingerprint(StepTextRenderer())
    path.write_text(json.dumps(manifest))
    name = serve_stored(service, project, folder, "before")
    items = [{"messages": messages(*names)} for names in (("planner", "clerk"), ("clerk", "planner"))]
    first, second = score_results(http, name, *items)
    assert first["reward"] == pytest.approx(second["reward"], abs=1e-9)
    assert "unread:speaker" in first["flags"]
    assert "unread:speaker" in second["flags"]
