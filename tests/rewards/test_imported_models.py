"""Public reward models, imported and served: every protocol gives transformers' own logits."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from tests.rewards.conftest import Service, serve_stored
from tests.workers.public_models import (
    LLAMA3,
    pair_logits,
    save_bidirectional,
    save_classifier,
    transformers_logits,
)
from workers.importing import Checkpoint, recognise
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.schema.import_options import ImportOptions

pytestmark = pytest.mark.ml
PROMPT, GOOD, BAD = "Where is my parcel?", "It comes today.", "No idea."


def chat(answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": answer}]


def rendered(answer: str) -> str:
    """As trainers send it, whose policy has the same template."""
    return (
        f"<|start_header_id|>user<|end_header_id|>\n\n{PROMPT}<|eot_id|>"
        f"<|start_header_id|>assistant<|end_header_id|>\n\n{answer}<|eot_id|>"
    )


def artifact(public: Path, folder: Path, **options: str) -> Path:
    given = ImportOptions.parse(options)
    checkpoint = Checkpoint(public)
    request = ImportRequest(checkpoint=public, options=given)
    import_checkpoint(checkpoint, recognise(checkpoint, given), folder, request)
    return folder


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("public")
    names = {"0": "good", "1": "brief"}
    save_classifier(folder / "llama", "llama", template=LLAMA3, labels=2, id2label=names)
    artifact(folder / "llama", folder / "llama-model", label="good")
    save_bidirectional(folder / "deberta", "deberta-v2")
    artifact(folder / "deberta", folder / "deberta-model")
    return folder


def test_a_decoder_by_every_protocol(
    service: Service, project: Project, http: httpx.Client, public: Path
) -> None:
    name = serve_stored(service, project, public / "llama-model", "skywork")
    logits = {answer: transformers_logits(public / "llama", chat(answer)).tolist() for answer in (GOOD, BAD)}
    good, bad = (pytest.approx(logits[answer][0], abs=1e-5) for answer in (GOOD, BAD))

    def ask(path: str, body: dict[str, Any]) -> Any:
        reply = http.post(path, json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    inputs = [{"messages": chat(GOOD)}, {"prompt": PROMPT, "response": BAD}]
    found = ask(f"/api/v1/rewards/{name}/score", {"inputs": inputs, "criteria": ["brief"]})["results"]
    assert [each["reward"] for each in found] == [good, bad]
    assert found[0]["criteria"]["brief"] == pytest.approx(logits[GOOD][1], abs=1e-5)
    both = {"model": name, "input": [rendered(GOOD), rendered(BAD)], "use_activation": False}
    assert [row["probs"][0] for row in ask("/compat/vllm/classify", both)["data"]] == [good, bad]
    messages = {"model": name, "messages": chat(GOOD)}
    assert ask("/compat/vllm/classify", messages)["data"][0]["probs"] == [good]
    pooled = ask("/compat/vllm/pooling", {"model": name, "input": rendered(BAD)})
    assert pooled["data"][0]["data"] == [[bad]]
    scored = ask("/compat/vllm/score", {"model": name, "text_1": PROMPT, "text_2": [GOOD, BAD]})
    assert [row["score"] for row in scored["data"]] == [good, bad]
    ranked = ask("/compat/vllm/rerank", {"model": name, "query": PROMPT, "documents": [GOOD]})
    assert ranked["results"][0]["relevance_score"] == good
    assert ask("/compat/sglang/classify", {"model": name, "text": rendered(GOOD)})["embedding"] == [good]
    tei = ask(f"/compat/tei/{name}/predict", {"inputs": rendered(GOOD), "raw_scores": True})
    assert tei[0]["score"] == good
    assert ask(f"/compat/slime/{name}", {"prompt": PROMPT, "response": GOOD, "label": "x"}) == good
    factory = ask(f"/compat/llamafactory/{name}", {"model": "m", "messages": [rendered(GOOD), rendered(BAD)]})
    assert factory["scores"] == [good, bad]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": GOOD}]}
    gym = {"responses_create_params": {"input": PROMPT}, "response": {"output": [said]}}
    assert ask(f"/compat/nemo-gym/{name}/verify", gym)["reward"] == good
    queries = {
        "query": [rendered(GOOD)],
        "prompts": [rendered("").removesuffix("<|eot_id|>")],
        "labels": [""],
    }
    assert ask(f"/compat/openrlhf/{name}/get_reward", queries)["rewards"] == [good]


def test_a_model_of_pairs(service: Service, project: Project, http: httpx.Client, public: Path) -> None:
    name = serve_stored(service, project, public / "deberta-model", "deberta")
    expected = [
        pytest.approx(float(pair_logits(public / "deberta", PROMPT, each)[0]), abs=1e-5)
        for each in (GOOD, BAD)
    ]
    body = {"inputs": [{"messages": chat(GOOD)}, {"prompt": PROMPT, "response": BAD}]}
    found = http.post(f"/api/v1/rewards/{name}/score", json=body).json()["results"]
    assert [each["reward"] for each in found] == expected
    scored = http.post(
        "/compat/vllm/score", json={"model": name, "text_1": PROMPT, "text_2": [GOOD, BAD]}
    ).json()
    assert [row["score"] for row in scored["data"]] == expected
