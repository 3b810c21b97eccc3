"""Trainers' own client code, as it comes from pip, against a running service. Skipped where a peer is not installed.

What those modules import besides (ray, flash attention, ...) they need to train, not to ask for a reward: it is
replaced by empty modules here, their client code is not.
"""

import asyncio
import types
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import torch

from benchmarks.chat_templates import template_text
from tests.rewards.wire.reading_model import ReadingModel
from tests.workers.decoders import tokenizer
from tests.workers.engine.fakes import FakeModel

pytestmark = pytest.mark.ml

PROMPT, RESPONSE = "Where is my parcel?", "It comes today."


TURNS = [
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "What is it?"},
    {"role": "user", "content": PROMPT},
]


@pytest.fixture
def fake() -> FakeModel:
    return ReadingModel()


@pytest.fixture
def expected(http, endpoint) -> dict[str, float]:
    """The reward of the pair, and of its two texts as one."""
    items = [{"prompt": PROMPT, "response": RESPONSE}, {"text": PROMPT + RESPONSE}]
    results = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": items}).json()["results"]
    return {"pair": results[0]["reward"], "text": results[1]["reward"]}


@pytest.fixture
def of_turns(http, endpoint) -> float:
    """The reward of several turns, as messages."""
    item = {"messages": [*TURNS, {"role": "assistant", "content": RESPONSE}]}
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [item]})
    reward: float = reply.json()["results"][0]["reward"]
    return reward


def test_openrlhf(service, endpoint, key, expected, load_peer, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    agent = load_peer("openrlhf", "utils/agent.py")
    agent.logger = types.SimpleNamespace(info=print)
    url = f"{service.url}/compat/openrlhf/{endpoint}/get_reward?key={key}"
    executor = agent.SingleTurnAgentExecutor(remote_rm_url=[url])
    (info,) = asyncio.run(executor._fetch_rewards_via_http([PROMPT + RESPONSE], [PROMPT], ["a label"]))
    assert info["rewards"] == [pytest.approx(expected["pair"], abs=1e-5)]
    assert set(info) == {"rewards", "scores", "extra_logs"}


def test_openrlhf_with_a_templated_prompt(service, endpoint, key, of_turns, load_peer, monkeypatch) -> None:
    """As `--apply_chat_template` renders it."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    agent = load_peer("openrlhf", "utils/agent.py")
    agent.logger = types.SimpleNamespace(info=print)
    url = f"{service.url}/compat/openrlhf/{endpoint}/get_reward?key={key}"
    executor = agent.SingleTurnAgentExecutor(remote_rm_url=[url])
    prompt = tokenizer(template_text("qwen3")).apply_chat_template(
        TURNS, tokenize=False, add_generation_prompt=True
    )
    asked = executor._fetch_rewards_via_http([f"{prompt}{RESPONSE}<|im_end|>"], [prompt], [""])
    (info,) = asyncio.run(asked)
    assert info["rewards"] == [pytest.approx(of_turns, abs=1e-5)]


def test_openrlhf_from_its_tokens(service, endpoint, key, expected, load_peer) -> None:
    """A whole roll-out: generated tokens, decoded, sent, the reward read."""
    agent = load_peer("openrlhf", "utils/agent.py")
    agent.logger = types.SimpleNamespace(info=print)
    url = f"{service.url}/compat/openrlhf/{endpoint}/get_reward?key={key}"
    executor, made = agent.SingleTurnAgentExecutor(remote_rm_url=url), tokenizer()

    class Engine:
        async def generate(self, *args: Any, **kwargs: Any) -> Any:
            ids = made(RESPONSE, add_special_tokens=False)["input_ids"]
            output = types.SimpleNamespace(token_ids=ids, text=RESPONSE, finish_reason="stop", logprobs=None)
            return types.SimpleNamespace(outputs=[output])

    sampling = types.SimpleNamespace(max_tokens=50, logprobs=None)
    done = asyncio.run(executor.execute(PROMPT, "label", sampling, 500, made, Engine()))
    assert done["reward"] == [pytest.approx(expected["pair"], abs=1e-5)]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_verl_reward_loop(service, endpoint, key, expected, load_peer, engine) -> None:
    """Its reward loop appends the path to an address and sends no header: the key goes into the address's query."""
    loop = load_peer("verl", "experimental/reward_loop/reward_loop.py", "ray", "omegaconf", "tensordict")
    worker = loop.RewardLoopWorker.__new__(loop.RewardLoopWorker)
    named = types.SimpleNamespace
    reward_model = named(rollout=named(name=engine), model_path=f"/models/{endpoint}")
    worker.config = named(reward=named(reward_model=reward_model))
    verb = {"vllm": "classify", "sglang": "v1/embeddings"}[engine]
    host = service.url.removeprefix("http://")
    worker.reward_router_address = f"{host}/compat/vllm/{verb}?key={key}&then="

    async def prompt(data: Any) -> str:
        return PROMPT + RESPONSE

    worker._preprocess_reward_inputs = prompt
    assert asyncio.run(worker.compute_score_disrm(None))["reward_score"] == pytest.approx(
        expected["text"], abs=1e-5
    )


def test_verl_reward_loop_with_several_turns(service, endpoint, key, of_turns, load_peer) -> None:
    """From the tokens of a roll-out and the messages of its row, which it renders by the reward model's template."""
    loop = load_peer("verl", "experimental/reward_loop/reward_loop.py", "ray", "omegaconf", "tensordict")
    worker = loop.RewardLoopWorker.__new__(loop.RewardLoopWorker)
    named, made = types.SimpleNamespace, tokenizer(template_text("qwen3"), eos_token="<|im_end|>")
    reward_model = named(rollout=named(name="vllm"), model_path=f"/models/{endpoint}")
    worker.config = named(reward=named(reward_model=reward_model))
    worker.input_tokenizer = worker.reward_model_tokenizer = made
    host = service.url.removeprefix("http://")
    worker.reward_router_address = f"{host}/compat/vllm/classify?key={key}&then="
    ids = made(f"{RESPONSE}<|im_end|>", return_tensors="pt", add_special_tokens=False)["input_ids"][0]
    batch = {"responses": ids, "attention_mask": torch.ones_like(ids)}
    row = named(batch=batch, non_tensor_batch={"raw_prompt": np.array(TURNS, dtype=object)})
    found = asyncio.run(worker.compute_score_disrm([row]))
    assert found["reward_score"] == pytest.approx(of_turns, abs=1e-5)


def test_llama_factory(service, endpoint, key, expected, load_peer) -> None:
    utils = load_peer("llamafactory", "train/ppo/ppo_utils.py")
    url = f"{service.url}/compat/llamafactory/{endpoint}?key={key}"
    rewards = utils.get_rewards_from_server(url, [PROMPT + RESPONSE, RESPONSE])
    assert rewards.shape == (2,)
    assert float(rewards[0]) == pytest.approx(expected["text"], abs=1e-5)


def test_openai_embeddings(service, endpoint, key, expected) -> None:
    """OpenAI's client asks for base64 by itself."""
    with openai.OpenAI(
        base_url=f"{service.url}/compat/vllm/v1", api_key=key, http_client=httpx.Client(trust_env=False)
    ) as client:
        found = client.embeddings.create(model=endpoint, input=[PROMPT + RESPONSE])
        assert found.data[-1].embedding[-1] == pytest.approx(expected["text"], abs=1e-5)
        with pytest.raises(openai.UnprocessableEntityError, match="expected a string"):
            client.post("/embeddings", cast_to=object, body={"model": endpoint, "input": [None]})


def test_vllm_as_its_documentation_asks(service, endpoint, key, expected) -> None:
    """examples/pooling/classify of vLLM: requests.post(url, json=payload).json()["data"]."""
    headers = {"Authorization": f"Bearer {key}"}
    body = {"model": endpoint, "input": PROMPT + RESPONSE}
    with httpx.Client(base_url=f"{service.url}/compat/vllm", headers=headers, trust_env=False) as client:
        (found,) = client.post("/classify", json=body).json()["data"]
        assert found["probs"] == [pytest.approx(expected["text"], abs=1e-5)]
        assert len(found["probs"]) == found["num_classes"]
        pair = {"model": endpoint, "text_1": PROMPT, "text_2": RESPONSE}
        (score,) = client.post("/score", json=pair).json()["data"]
        assert score["score"] == pytest.approx(expected["pair"], abs=1e-5)
