"""docs/examples/verifiers_environment.py in verifiers itself, by `vf-eval`: a scripted model, a real reward service.

`make test-verifiers` installs verifiers first, in an environment of its own.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from touchstone_client import RewardClient

from tests.examples.conftest import DeskService
from tests.examples.scripted_model import scripted_model

INSTALLED = Path(os.environ.get("TOUCHSTONE_TEST_VERIFIERS", f"{sys.prefix}/verifiers")) / "bin"
ROOT = Path(__file__).parents[2]
ROLLOUTS = 2
ORDERS = ("1041", "1042", "1043")
PLUGGED = """
import os
from touchstone_client import verifiers_reward

reward = verifiers_reward(os.environ["URL"], "desk", os.environ["TOUCHSTONE_KEY"])
"""

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(not (INSTALLED / "vf-eval").is_file(), reason="needs verifiers: make test-verifiers"),
]


@pytest.fixture
def model() -> Iterator[str]:
    """Looks the order up, then answers with what the tool said, more politely each time."""
    numbers = itertools.count(1)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return {"content": f"{last['content']}{'!' * next(numbers)}"}
        order = next(word for word in last["content"].replace("?", "").split() if word.isdigit())
        name = body["tools"][0]["function"]["name"]
        function = {"name": name, "arguments": json.dumps({"order": order})}
        return {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}

    with scripted_model(answer) as url:
        yield url


def evaluate(desk_service: DeskService, model: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    """The traces that vf-eval writes."""
    command = [
        str(INSTALLED / "vf-eval"), "verifiers-environment", "--no-push", "--no-rich",
        "-r", str(ROLLOUTS), "-o", str(folder / "out"),
        "--env.taskset.task.url", desk_service.url, "--env.taskset.task.endpoint", "desk",
        "--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess",
        "--model", "scripted", "--client.base-url", f"{model}/v1", "--client.api-key-var", "MODEL_KEY", *options,
    ]  # fmt: skip
    environment = os.environ | {
        "PATH": f"{INSTALLED}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "docs/examples"),
        "TOUCHSTONE_KEY": desk_service.key,
        "MODEL_KEY": "none",
        "URL": desk_service.url,
    }
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (file,) = (folder / "out").glob("*/traces.jsonl")
    traces = [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]
    assert all(trace["ok"] for trace in traces), [trace["errors"] for trace in traces]
    return traces


def test_rewards_are_those_of_the_endpoint(desk_service: DeskService, model: str, tmp_path: Path) -> None:
    """By the method of the task, and by a function that is plugged in."""
    (tmp_path / "reward.py").write_text(PLUGGED)
    plugged = ("--env.taskset.task.rewards.plugged.fn", "reward.py:reward")
    traces = evaluate(desk_service, model, tmp_path, *plugged)
    assert sorted(trace["task"]["data"]["order"] for trace in traces) == sorted(ORDERS * ROLLOUTS)
    items = [{"messages": [_as_openai(node["message"]) for node in trace["nodes"]]} for trace in traces]
    roles = [message["role"] for message in items[0]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    with RewardClient(desk_service.url, "desk", desk_service.key) as client:
        expected = client.score(items).rewards
    assert len(set(expected)) == len(ORDERS) * ROLLOUTS  # every answer is longer than the one before
    for name in ("endpoint_reward", "plugged"):
        assert [trace["rewards"][name]["score"] for trace in traces] == pytest.approx(expected, abs=1e-5)
    assert all(trace["metrics"]["flagged"] == 0 for trace in traces)


def _as_openai(message: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
        for call in message.get("tool_calls", [])
    ]  # fmt: skip
    return {"content": None} | message | ({"tool_calls": calls} if calls else {})
