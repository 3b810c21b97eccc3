"""Reference answers, goals, principles and personas over the protocols of trainers: the model reads the same as from
`/score`, and what a request lacks is flagged.

The requests are what the peers' own code sends, where it is on PyPI: recorded from the running client. slime, NeMo-Gym,
vLLM's and SGLang's servers are not: of these the bodies have the keys that the peer's source sends or accepts, named at
each.
"""

import asyncio
import json
import types
from typing import Any

import httpx
import openai
import pytest
from touchstone_client import openrlhf, values, verl

from apps.rewards.services import deploy
from apps.rewards.serving.wire.protocol import address_conditions
from tests.rewards.conftest import make_model, serves, wait_until
from tests.rewards.wire.reading_model import ReadingModel
from tests.rewards.wire.score_calls import score_results
from tests.workers.engine.fakes import FakeModel, FakeRendered
from workers.errors import RewardError
from workers.schema import Trajectory, parse_item
from workers.schema.conditions import CONDITIONS

Json = dict[str, Any]
PROMPT, RESPONSE = "Where is my parcel?", "It comes today."
PAIR = {"prompt": PROMPT, "response": RESPONSE}
GIVEN = {"reference": "42", "goal": "find it", "principle": "be brief", "persona": "a pilot"}
MESSAGES = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": RESPONSE}]
ANSWERED = {
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": RESPONSE}]}
    ]
}
# As slime's rm_hub/__init__.py (`remote_rm`) has them: prompt, response and label of the sample, and no metadata.
SLIME = PAIR | {"label": GIVEN}
# As OpenRLHF's utils/agent.py (`_fetch_rewards_via_http`): labels are the rows' values of --data.label_key.
OPENRLHF = {"query": [PROMPT + RESPONSE], "prompts": [PROMPT], "labels": [GIVEN]}
# As NeMo-Gym's simple_agent (`SimpleAgentVerifyRequest`, extra="allow"): the row's fields go on to `verify`.
ROW = {"responses_create_params": {"input": PROMPT}, "response": ANSWERED}
NEMO = ROW | {
    "verifier_metadata": {"goal": "find it", "principle": "be brief"},
    "persona": "a pilot",
    "expected_answer": 42,
}
FIELDS = {*GIVEN, "label", "labels", "verifier_metadata", "expected_answer"}  # that have the conditions

REQUESTS: dict[str, tuple[str, Json]] = {
    "openrlhf": ("/compat/openrlhf/{e}/get_reward", OPENRLHF),
    "openrlhf: a label in JSON": (
        "/compat/openrlhf/{e}/get_reward",
        OPENRLHF | {"labels": [json.dumps(GIVEN)]},
    ),
    "slime": ("/compat/slime/{e}", SLIME),
    "nemo-gym": ("/compat/nemo-gym/{e}/verify", NEMO),
    "nemo-gym: fields of the row": ("/compat/nemo-gym/{e}/verify", ROW | GIVEN | {"expected_answer": "41"}),
    # vLLM's OpenAIBaseModel has extra="allow": clients send fields of their own next to the documented ones.
    "vllm: messages": ("/compat/vllm/classify", {"messages": MESSAGES} | GIVEN),
    "vllm: pooling": ("/compat/vllm/pooling", {"messages": MESSAGES} | GIVEN),
    "vllm: score": ("/compat/vllm/score", {"text_1": PROMPT, "text_2": RESPONSE} | GIVEN),
    "vllm: rerank": ("/compat/vllm/rerank", {"query": PROMPT, "documents": [RESPONSE]} | GIVEN),
    # SGLang's EmbeddingReqInput and TEI's PredictRequest ignore keys that they do not know.
    "sglang": ("/compat/sglang/classify", {"text": [[PROMPT, RESPONSE]]} | GIVEN),
    "tei": ("/compat/tei/predict", {"inputs": [PROMPT, RESPONSE]} | GIVEN),
    "tei: rerank": ("/compat/tei/rerank", {"query": PROMPT, "texts": [RESPONSE]} | GIVEN),
}


class ConditionedModel(ReadingModel):
    """Remembers the conversations that it read, with their conditions."""

    def render(self, content: Any, *, session: Any = None) -> FakeRendered:
        if isinstance(content, Trajectory):
            self.seen.append(content)
        return super().render(content, session=session)


@pytest.fixture
def fake() -> FakeModel:
    return ConditionedModel(conditioned=CONDITIONS)


def url_of(path: str, endpoint: str) -> str:
    return path.replace("{e}", endpoint)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_has_the_conditions_that_score_has(http, endpoint, fake, name: str) -> None:
    path, body = REQUESTS[name]
    reply = http.post(url_of(path, endpoint), json=body | ({} if "{e}" in path else {"model": endpoint}))
    assert reply.status_code == 200, reply.text
    assert fake.seen[-1].conditions == GIVEN
    assert "X-Touchstone-Flags" not in reply.headers
    (expected,) = score_results(http, endpoint, PAIR | GIVEN)
    assert (fake.seen[-1].conditions, expected["flags"]) == (GIVEN, [])


@pytest.mark.parametrize("name", REQUESTS)
def test_conditions_that_are_missing_are_named_as_score_names_them(http, endpoint, name: str) -> None:
    path, body = REQUESTS[name]
    body = {key: value for key, value in body.items() if key not in FIELDS} | {"model": endpoint}
    reply = http.post(url_of(path, endpoint), json=body)
    (expected,) = score_results(http, endpoint, PAIR)
    assert reply.headers["X-Touchstone-Flags"].split(",") == sorted(expected["flags"])
    assert expected["flags"] == [f"missing:{name}" for name in CONDITIONS]


def test_conditions_that_no_model_reads_are_named(http, service, project) -> None:
    model = make_model(project, service, ConditionedModel(conditioned=("goal",)), name="goals")
    deploy(model=model, endpoint_name="goals", project=project, by=None)
    wait_until(lambda: serves(service, "goals", 1))
    for path, body in REQUESTS.values():
        reply = http.post(url_of(path, "goals"), json=body | {"model": "goals"})
        assert reply.headers["X-Touchstone-Flags"] == "unread:persona,unread:principle,unread:reference", path


def test_several_inputs_have_one_condition_each_or_share_one(http, endpoint, fake) -> None:
    body = {"model": endpoint, "query": PROMPT, "documents": ["a", "b"]}
    each = body | {"goal": ["x", None], "persona": "ann"}
    assert http.post("/compat/vllm/rerank", json=each).status_code == 200
    assert [seen.conditions for seen in fake.seen[-2:]] == [
        {"goal": "x", "persona": "ann"},
        {"persona": "ann"},
    ]
    reply = http.post("/compat/vllm/rerank", json=body | {"goal": ["x"]})
    assert reply.status_code == 422
    assert (reply.json()["detail"], reply.json()["pointer"]) == (
        "has 1 values for 2 inputs; send one for all of them, or one for each.",
        "/goal",
    )


def test_a_list_is_the_condition_of_a_single_input(http, endpoint, fake) -> None:
    http.post(f"/compat/slime/{endpoint}", json=PAIR | {"label": {"goal": [1, 2]}})
    assert fake.seen[-1].conditions == {"goal": "[1, 2]"}
    http.post(f"/compat/nemo-gym/{endpoint}/verify", json=ROW | {"goal": [0.5], "reference": ["a", "b"]})
    assert fake.seen[-1].conditions == {"goal": "[0.5]", "reference": '["a", "b"]'}


def test_a_condition_that_is_too_long_is_refused_with_its_place(http, endpoint) -> None:
    label = {"goal": "x" * 100_001}
    reply = http.post(f"/compat/openrlhf/{endpoint}/get_reward", json=OPENRLHF | {"labels": [label]})
    assert (reply.status_code, reply.json()["pointer"]) == (422, "/labels/0/goal")


ADDRESS = "goal=find%20it&principle=be%20brief&persona=a%20pilot&reference=42"


@pytest.mark.parametrize("name", REQUESTS)
def test_the_address_has_what_holds_for_all_requests(http, endpoint, fake, name: str) -> None:
    path, body = REQUESTS[name]
    own = {"principle": "be thorough"}
    body = {key: value for key, value in body.items() if key not in FIELDS} | {"model": endpoint}
    labelled = {"labels": [own]} if "labels" in REQUESTS[name][1] else {"label": own}
    body |= labelled if "openrlhf" in name or name == "slime" else own
    reply = http.post(f"{url_of(path, endpoint)}?{ADDRESS}", json=body)
    assert reply.status_code == 200, reply.text
    assert fake.seen[-1].conditions == GIVEN | own  # the request goes before the address


def test_the_native_api_refuses_conditions_in_the_address(http, endpoint) -> None:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score?goal=x", json={"inputs": [PAIR]})
    assert (reply.status_code, reply.json()["parameter"]) == (422, "goal")


def test_a_condition_of_the_address_is_checked() -> None:
    with pytest.raises(RewardError, match="at most 100,000 are read"):
        address_conditions((parse_item(PAIR),), {"goal": "x" * 100_001})


@pytest.mark.ml
def test_openrlhfs_own_client(service, endpoint, key, fake, load_peer, monkeypatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    agent = load_peer("openrlhf", "utils/agent.py")
    agent.logger = types.SimpleNamespace(info=print)
    url = f"{service.url}/compat/openrlhf/{endpoint}/get_reward?key={key}&persona=a%20pilot"
    executor = agent.SingleTurnAgentExecutor(remote_rm_url=[url])
    for label in (GIVEN, json.dumps(GIVEN), GIVEN | {"persona": None}):
        fake.seen.clear()
        (info,) = asyncio.run(executor._fetch_rewards_via_http([PROMPT + RESPONSE], [PROMPT], [label]))
        assert fake.seen[-1].conditions == GIVEN
        assert info["extra_logs"]["flagged"] == [0.0]
    (info,) = asyncio.run(executor._fetch_rewards_via_http([PROMPT + RESPONSE], [PROMPT], ["42"]))
    assert fake.seen[-1].conditions == {"reference": "42", "persona": "a pilot"}
    assert info["extra_logs"]["flagged"] == [1.0]


@pytest.mark.ml
def test_clients_that_send_texts_only_have_them_in_the_address(
    service, endpoint, key, fake, load_peer
) -> None:
    """LLaMA-Factory's client and verl's reward loop send no fields of rows."""
    text = "<|im_start|>user\n" + PROMPT + "<|im_end|>\n<|im_start|>assistant\n" + RESPONSE + "<|im_end|>\n"
    utils = load_peer("llamafactory", "train/ppo/ppo_utils.py")
    url = f"{service.url}/compat/llamafactory/{endpoint}?key={key}&{ADDRESS}"
    utils.get_rewards_from_server(url, [text])
    assert fake.seen[-1].conditions == GIVEN
    loop = load_peer("verl", "experimental/reward_loop/reward_loop.py", "ray", "omegaconf", "tensordict")
    worker = loop.RewardLoopWorker.__new__(loop.RewardLoopWorker)
    named = types.SimpleNamespace
    reward_model = named(rollout=named(name="vllm"), model_path=f"/models/{endpoint}")
    worker.config = named(reward=named(reward_model=reward_model))
    host = service.url.removeprefix("http://")
    worker.reward_router_address = f"{host}/compat/vllm/classify?key={key}&goal=find%20it&then="

    async def rendered(data: Any) -> str:
        return text

    worker._preprocess_reward_inputs = rendered
    asyncio.run(worker.compute_score_disrm(None))
    assert fake.seen[-1].conditions == {"goal": "find it"}


def test_openais_client_sends_them_as_its_extra_body(service, endpoint, key, fake) -> None:
    chat = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
    with openai.OpenAI(
        base_url=f"{service.url}/compat/vllm/v1", api_key=key, http_client=httpx.Client(trust_env=False)
    ) as client:
        client.embeddings.create(model=endpoint, input=[chat, chat], extra_body=GIVEN | {"goal": ["a", "b"]})
    assert [seen.conditions["goal"] for seen in fake.seen[-2:]] == ["a", "b"]
    assert fake.seen[-1].conditions == GIVEN | {"goal": "b"}


LABELS: list[tuple[Any, Json]] = [
    (GIVEN, GIVEN),
    (json.dumps(GIVEN), GIVEN),
    ({"goal": "x", "persona": None, "reference": ""}, {"goal": "x"}),
    ({"goal": {"x": 1}}, {"goal": '{"x": 1}'}),
    ({"goal": "x", "tests": 3}, {"reference": '{"goal": "x", "tests": 3}'}),
    ('{"goal": "x", "tests": 3}', {"reference": '{"goal": "x", "tests": 3}'}),
    ("{goal}", {"reference": "{goal}"}),
    ('["goal"]', {"reference": '["goal"]'}),
    ({}, {"reference": "{}"}),
    ("{" * 100_000, {"reference": "{" * 100_000}),
]


@pytest.mark.parametrize(("label", "expected"), LABELS)
def test_labels(label: Any, expected: Json) -> None:
    assert values.label_values(label) == expected
    item, _ = openrlhf.to_item("Hi.No.", "Hi.", label)
    assert item == {"prompt": "Hi.", "response": "No."} | expected


def test_the_clients_scripts_send_conditions_of_any_type() -> None:
    item = verl.to_item("No.", None, {"goal": [1, 2], "persona": "", "principle": "brief"}, "prompt")
    assert item == {"text": "No.", "goal": "[1, 2]", "principle": "brief"}
