"""docs/examples/agentlightning_rollouts.py in Agent-Lightning itself: a scripted model, a real reward service.

`make test-agentlightning` installs Agent-Lightning first, in an environment of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from touchstone_client import RewardClient

from tests.examples.conftest import DeskService
from tests.examples.scripted_model import scripted_model
from tests.trajectories.tracing.test_agent_lightning import REQUESTS, read

PYTHON = Path(os.environ.get("TOUCHSTONE_TEST_AGENTLIGHTNING", f"{sys.prefix}/agentlightning")) / "bin/python"
EXAMPLE = Path(__file__).parents[2] / "docs/examples/agentlightning_rollouts.py"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.is_file(), reason="needs Agent-Lightning: make test-agentlightning"),
]


def test_rollouts_return_the_endpoints_reward_and_can_be_imported(
    desk_service: DeskService, tmp_path: Path
) -> None:
    spans = tmp_path / "spans.jsonl"
    with scripted_model(lambda body: {"content": "Yes. " * len(body["messages"][-1]["content"])}) as model:
        command = [
            str(PYTHON), str(EXAMPLE), "--url", desk_service.url, "--endpoint", "desk",
            "--model", "scripted", "--model-url", f"{model}/v1", "--spans", str(spans),
        ]  # fmt: skip
        environment = os.environ | {
            "TOUCHSTONE_KEY": desk_service.key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it waits for a list of prices
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    trajectories = read([json.loads(line) for line in spans.read_text().splitlines()])
    assert {trajectory.steps[1].text for trajectory in trajectories} == REQUESTS
    items = [
        {
            "messages": [
                {"role": role, "content": step.text}
                for role, step in zip(("system", "user", "assistant"), trajectory.steps, strict=True)
            ]
        }
        for trajectory in trajectories
    ]
    with RewardClient(desk_service.url, "desk", desk_service.key) as client:
        expected = client.score(items).rewards
    assert len(set(expected)) == len(REQUESTS)
    assert [trajectory.reward for trajectory in trajectories] == pytest.approx(expected, abs=1e-5)
