"""A decoder that a vLLM or SGLang server computes gives the reward it gives when it is computed here.

With TOUCHSTONE_VLLM naming the command `vllm` of an environment that runs here, against a real server too.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.core.storage import artifacts
from apps.rewards.services import put_spec
from apps.rewards.serving.servers import ReplicaInfo, ServerPool
from apps.rewards.serving.state import StoredModels
from apps.training.models import RewardModel
from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS, DOCUMENTS
from tests.core.servers import serving
from tests.ports import free_port
from tests.rewards.conftest import Service, serves, wait_until
from tests.rewards.vllm import LONGEST, Sglang, Vllm, vllm_of
from tests.workers.decoders import save_decoder
from workers.errors import Unavailable
from workers.models import Lineage, build, save
from workers.schema.recipe import parse_recipe
from workers.schema.remote_models import ModelProbe

pytestmark = pytest.mark.ml

TALK = [
    {"role": "user", "content": "where is the order"},
    {"role": "assistant", "content": "it was sent"},
    {"role": "user", "content": "thank you"},
    {"role": "assistant", "content": "a refund is good"},
]
ITEMS = [
    {"messages": TALK},
    {"prompt": "hello", "response": "the order was lost"},
    {"text": "hello"},
    {"messages": TALK[1:]},
]


def decoder(folder: Path, *, seed: int = 0, **fields: Any) -> Path:
    base = save_decoder(
        folder / f"base-{seed}", "qwen2", shape={"hidden_size": 128, "num_attention_heads": 2}
    )
    values = {
        "backbone": "decoder",
        "decoder": str(base),
        "max_tokens": LONGEST,
        "lora_rank": 0,
        "ensemble": 3,
    }
    recipe = parse_recipe(values | fields)
    torch.manual_seed(seed)
    made = folder / f"model-{seed}"
    reward = {"median": 0.3, "std": 0.7}
    save(build(recipe), made, recipe=recipe, reward=reward, criteria={}, lineage=Lineage())
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder(tmp_path_factory.mktemp("decoder"))


@pytest.fixture
def model(service: Service, project: Project, folder: Path) -> RewardModel:
    service.state.deployments._load = StoredModels()
    manifest = json.loads((folder / "touchstone.json").read_text())
    artifact = artifacts.store_tree(folder, "models/desk/big-1")
    return RewardModel.objects.create(
        project=project, name="big", version=1, artifact=artifact, manifest=manifest
    )


def put(project: Project, server: str | None, endpoint: str = "big") -> None:
    part = {"name": "big", "model": "big@1"} | ({"server": server} if server else {})
    put_spec(project=project, endpoint_name=endpoint, spec={"components": [part]}, by=None)


def results(http: httpx.Client, endpoint: str) -> list[dict[str, Any]]:
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": ITEMS})
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["results"]
    return found


def same(http: httpx.Client, service: Service, project: Project) -> None:
    put(project, None, "here")
    put(project, "gpu", "there")
    wait_until(lambda: serves(service, "here", 1) and serves(service, "there", 1), 30)
    for here, there in zip(results(http, "here"), results(http, "there"), strict=True):
        assert there["reward"] == pytest.approx(here["reward"], abs=1e-5)
        assert there["std"] == pytest.approx(here["std"], abs=1e-5)
        steps = [[step["reward"] for step in entry["steps"]] for entry in (there, here)]
        assert steps[0] == pytest.approx(steps[1], abs=1e-5)
        assert there["tokens"] == here["tokens"]


def test_a_server_gives_the_reward_that_is_computed_here(
    service, project, model, http, folder, settings
) -> None:
    handler = vllm_of(folder, key="secret")
    with serving(handler) as url:
        settings.VLLM_SERVERS = {"gpu": url.replace("//", "//:secret@")}
        same(http, service, project)
    asked = [len(body["input"]) for body in handler.asked]
    assert asked == [1, 1, 2, 1 + len(ITEMS)], "what it serves, the probe, the warm-up, and one request"


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        (Vllm, {"task": "classify"}),
        (Sglang, {}),
        (Vllm, {"encodes": "base64"}),
    ],
    ids=["vllm-classify", "sglang", "base64"],
)
def test_so_does_one_that_reads_the_last_token_only_or_encodes(
    service, project, model, http, folder, settings, kind, attributes
) -> None:
    with serving(vllm_of(folder, kind, **attributes)) as url:
        settings.VLLM_SERVERS = {"gpu": url}
        same(http, service, project)


@pytest.fixture
def real_server(folder: Path, tmp_path: Path) -> Iterator[str]:
    command = os.environ.get("TOUCHSTONE_VLLM")
    if not command:
        pytest.skip("TOUCHSTONE_VLLM names no command of vLLM")
    port = free_port()
    options = ["--runner=pooling", "--pooler-config.task=token_classify", "--dtype=float32"]
    options += [f"--max-model-len={LONGEST}", f"--port={port}"]
    environment = os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with (tmp_path / "vllm.log").open("w") as log:
        server = subprocess.Popen(
            [command, "serve", str(folder), *options], stdout=log, stderr=log, env=environment
        )
        try:
            for _ in range(300):
                assert server.poll() is None, (tmp_path / "vllm.log").read_text()[-3000:]
                try:
                    httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def test_so_does_vllm_itself(real_server, service, project, model, http, settings) -> None:
    settings.VLLM_SERVERS = {"gpu": real_server}
    same(http, service, project)


def test_another_model_on_the_server_is_not_served(service, project, model, tmp_path, settings) -> None:
    with serving(vllm_of(decoder(tmp_path, seed=5))) as url:
        settings.VLLM_SERVERS = {"gpu": url}
        put(project, "gpu")
        wait_until(lambda: failure(service) is not None)
    assert "computes another model" in failure(service)


def test_a_server_that_comes_back_with_another_model_is_not_believed(
    service, project, model, http, folder, tmp_path, settings
) -> None:
    handler = vllm_of(folder)
    with serving(handler) as url:
        settings.VLLM_SERVERS = {"gpu": url}
        put(project, "gpu")
        wait_until(lambda: serves(service, "big", 1))
        assert len(results(http, "big")) == len(ITEMS)
        handler.model = vllm_of(decoder(tmp_path, seed=5)).model
        reply = http.post("/api/v1/rewards/big/score", json={"inputs": [{"text": "yes"}]})
        assert reply.status_code == 503
        assert "computes another model" in reply.json()["detail"]


def failure(service: Service) -> str | None:
    deployment = service.deployed.get("big")
    return None if deployment is None or deployment.failure is None else deployment.failure.detail


def test_a_server_that_reads_less_is_not_served(service, project, folder, tmp_path, settings) -> None:
    made = decoder(tmp_path, seed=6, max_tokens=2 * LONGEST)
    artifact = artifacts.store_tree(made, "models/desk/big-1")
    manifest = json.loads((made / "touchstone.json").read_text())
    RewardModel.objects.create(project=project, name="big", version=1, artifact=artifact, manifest=manifest)
    with serving(vllm_of(made)) as url:
        settings.VLLM_SERVERS = {"gpu": url}
        put(project, "gpu")
        wait_until(lambda: failure(service) is not None)
    assert f"--max-model-len {2 * LONGEST}" in failure(service)


def test_while_the_server_is_away_every_request_is_told_to_try_again(
    service, project, model, http, folder, settings
) -> None:
    handler = vllm_of(folder)
    with serving(handler) as url:
        settings.VLLM_SERVERS = {"gpu": url}
        put(project, "gpu")
        wait_until(lambda: serves(service, "big", 1))
        before = results(http, "big")
        handler.fails_with = 500
        new = {"inputs": [{"text": "yes"}, {"text": "no"}]}
        reply = http.post("/api/v1/rewards/big/score", json=new)
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
        assert "The server gpu answers 500" in reply.json()["detail"]
        assert "pointer" not in reply.json(), "no item is to blame"
        assert len(handler.asked) == 5, "a batch is not tried again one by one"
        again = [result["reward"] for result in results(http, "big")]
        assert again == [entry["reward"] for entry in before], "what was scored is remembered"
        handler.fails_with = 0
        assert http.post("/api/v1/rewards/big/score", json=new).status_code == 200, "the request tries it"
    reply = http.post("/api/v1/rewards/big/score", json={"inputs": [{"text": "of it"}]})
    assert reply.status_code == 503
    assert "The server gpu does not respond" in reply.json()["detail"]
    assert "127.0.0.1" not in reply.text, "callers learn no address"


PROBE = ModelProbe(ids=(1, 2), values=((0.5,), (1.5,)), max_tokens=16)


@pytest.mark.parametrize("what", [*ANSWERS, *DOCUMENTS])
def test_a_server_that_is_broken_is_unavailable(what: str) -> None:
    answer = ANSWERS[what] if what in ANSWERS else hostile_server.whole(DOCUMENTS[what])
    with hostile_server.serving(answer) as url:
        pool = ServerPool("gpu")
        pool.follow([ReplicaInfo(url, guarded=False)])
        with pytest.raises(Unavailable):
            pool.connect(PROBE)
        pool.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"data": []}, "answered 0 of 1 items"),
        ({"data": [{"index": 0, "data": "AAAA"}]}, "does not answer as vLLM does"),
        ({"data": [{"index": 0, "data": [[1.0]]}]}, "was expected"),
    ],
)
def test_an_answer_that_is_none_is_no_reward(
    service, project, model, folder, settings, answer, said, monkeypatch
) -> None:
    handler = vllm_of(folder)
    right = handler._answer

    def wrong(self: Any, document: dict[str, Any]) -> None:
        right(self, answer if "created" in document else document)

    handler._answer = wrong  # type: ignore[method-assign]
    with serving(handler) as url:
        settings.VLLM_SERVERS = {"gpu": url}
        put(project, "gpu")
        wait_until(lambda: failure(service) is not None)
    assert said in failure(service)


def test_a_server_nobody_named_is_refused_when_the_spec_is_put(project, model, settings) -> None:
    settings.VLLM_SERVERS = {"gpu": "http://:secret@10.0.0.9:8000"}
    with pytest.raises(DomainError, match=r"there is no server 'other'.*: gpu") as refused:
        put(project, "other")
    assert refused.value.pointer == "/components/0/server"
    assert "secret" not in str(refused.value)
