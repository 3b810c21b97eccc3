"""verl's reward managers and OpenRLHF's executor, as they come from pip, with our functions on a running service.

verl's DataProto is replaced by rows of the same fields: what the managers read of it.
"""

import asyncio
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from touchstone_client import verl_compute_score, verl_compute_score_batch, verl_compute_score_sync

from tests.rewards.wire.reading_model import ReadingModel
from tests.workers.decoders import tokenizer
from tests.workers.engine.fakes import FakeModel

pytestmark = pytest.mark.ml

PROMPT, RESPONSES = "Where is my parcel?", ("It comes today.", "No idea.")


@dataclass
class DataRows:
    batch: dict[str, torch.Tensor]
    non_tensor_batch: dict[str, Any]

    def __len__(self) -> int:
        return len(self.batch["responses"])

    def __getitem__(self, place: Any) -> "DataRows":
        return DataRows(
            {name: values[place] for name, values in self.batch.items()},
            {name: values[place] for name, values in self.non_tensor_batch.items()},
        )


@pytest.fixture
def fake() -> FakeModel:
    return ReadingModel()


@pytest.fixture
def rewards(http, endpoint) -> list[float]:
    items = [{"prompt": PROMPT, "response": response} for response in RESPONSES]
    results = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": items}).json()["results"]
    assert results[0]["reward"] != results[1]["reward"]
    return [result["reward"] for result in results]


@pytest.fixture
def rows() -> DataRows:
    """A batch of verl: prompts padded on the left, responses on the right."""
    made = tokenizer()
    asked = made(PROMPT, return_tensors="pt", add_special_tokens=False)["input_ids"].repeat(2, 1)
    answers = [made(text, add_special_tokens=False)["input_ids"] for text in RESPONSES]
    longest = max(map(len, answers))
    padded = torch.tensor([ids + [0] * (longest - len(ids)) for ids in answers])
    mask = torch.tensor(
        [[1] * asked.shape[1] + [1] * len(ids) + [0] * (longest - len(ids)) for ids in answers]
    )
    extra = np.array([{"prompt": PROMPT} for _ in RESPONSES], dtype=object)
    truths = np.array([{"ground_truth": ""} for _ in RESPONSES], dtype=object)
    return DataRows(
        {"prompts": asked, "responses": padded, "attention_mask": mask},
        {"data_source": np.array(["desk"] * 2), "reward_model": truths, "extra_info": extra},
    )


@pytest.fixture
def load_manager(load_peer, monkeypatch) -> Callable[[str], Any]:
    """The module of a manager, its base class included."""

    def load(name: str) -> Any:
        package = types.ModuleType("verl.workers.reward_manager")
        package.register = lambda name: lambda manager: manager  # type: ignore[attr-defined]
        base = load_peer("verl", "workers/reward_manager/abstract.py")
        monkeypatch.setitem(sys.modules, package.__name__, package)
        monkeypatch.setitem(sys.modules, base.__name__, base)
        return load_peer("verl", f"workers/reward_manager/{name}.py")

    return load


@pytest.mark.parametrize(
    ("name", "manager", "make"),
    [
        ("naive", "NaiveRewardManager", verl_compute_score_sync),
        ("dapo", "DAPORewardManager", verl_compute_score_sync),
        ("batch", "BatchRewardManager", verl_compute_score_batch),
    ],
)
def test_a_manager_of_verl_pays_the_last_token(
    service, endpoint, key, rewards, rows, load_manager, name, manager, make
) -> None:
    compute_score = make(service.url, endpoint, key, run="managers")
    made = getattr(load_manager(name), manager)(tokenizer(), 0, compute_score)
    found = made(rows, return_dict=True)
    paid = found["reward_tensor"]
    lengths = rows.batch["attention_mask"][:, rows.batch["prompts"].shape[1] :].sum(-1)
    for row, (length, reward) in enumerate(zip(lengths.tolist(), rewards, strict=True)):
        assert float(paid[row, length - 1]) == pytest.approx(reward, abs=1e-5)
        assert int(paid[row].count_nonzero()) == 1
    assert found["reward_extra_info"]["score"] == pytest.approx(rewards, abs=1e-5)
    assert found["reward_extra_info"]["flagged"] == [0.0, 0.0]


def test_the_reward_loop_of_verl_awaits_the_function(
    service, endpoint, key, rewards, rows, load_peer
) -> None:
    base = types.ModuleType("verl.experimental.reward_loop.reward_manager.base")
    package = types.ModuleType("verl.experimental.reward_loop.reward_manager")

    class RewardManagerBase:
        def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
            self.tokenizer, self.compute_score = tokenizer, compute_score
            self.loop = asyncio.get_running_loop()

    base.RewardManagerBase = RewardManagerBase  # type: ignore[attr-defined]
    package.register = lambda name: lambda manager: manager  # type: ignore[attr-defined]
    sys.modules |= {base.__name__: base, package.__name__: package}  # load_peer removes them

    async def ask() -> list[dict[str, Any]]:
        module = load_peer("verl", "experimental/reward_loop/reward_manager/naive.py")
        compute_score = verl_compute_score(service.url, endpoint, key, run="loop")
        manager = module.NaiveRewardManager(None, tokenizer(), compute_score)
        return await asyncio.gather(*(manager.run_single(rows[[place]]) for place in range(2)))

    found = asyncio.run(ask())
    assert [result["reward_score"] for result in found] == pytest.approx(rewards, abs=1e-5)
    assert found[0]["reward_extra_info"]["flagged"] == 0.0


def test_openrlhf_calls_a_script(service, endpoint, key, rewards, load_peer, tmp_path: Path) -> None:
    """`--reward.remote_url reward.py`."""
    script = tmp_path / "reward.py"
    script.write_text(
        "from touchstone_client import openrlhf_reward_func\n"
        f"reward_func = openrlhf_reward_func({service.url!r}, {endpoint!r}, {key!r}, run='ppo')\n"
    )
    agent = load_peer("openrlhf", "utils/agent.py")
    agent.logger = types.SimpleNamespace(info=print)
    executor = agent.SingleTurnAgentExecutor(remote_rm_url=[str(script)])
    queries = [PROMPT + response for response in RESPONSES]
    found = asyncio.run(executor._fetch_rewards_via_func(queries, [PROMPT] * 2, [None] * 2))
    assert [float(result["rewards"][0]) for result in found] == pytest.approx(rewards, abs=1e-5)
    assert [result["extra_logs"]["flagged"].tolist() for result in found] == [[0.0], [0.0]]
