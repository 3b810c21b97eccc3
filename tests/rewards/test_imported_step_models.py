"""Process reward models, implicit ones and judges from elsewhere, served: `/score` with steps, and every protocol."""

import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from tests.rewards.conftest import Service, serve_stored
from tests.workers.decoders import save_decoder
from tests.workers.public_step_models import (
    SEPARATOR,
    STEPS,
    TASK,
    process_classifier_rewards,
    save_process_classifier,
)
from workers.evaluate import RecordScorer, evaluate
from workers.importing import Checkpoint, ImportOptions, recognise
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.models import load_scorer
from workers.schema import Part, PreferenceRecord, Step, StepLabelRecord, Task, Trajectory

pytestmark = pytest.mark.ml

MESSAGES = [{"role": "user", "content": TASK}, *({"role": "assistant", "content": step} for step in STEPS)]
_GENERATES = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
KINDS = ("process-classifier", "implicit-process", "generative-judge")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """By type, the checkpoint and the artifact."""
    found = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        options: dict[str, Any] = {"type": kind, "max_tokens": 4096}
        if kind == "process-classifier":
            source = save_process_classifier(folder / "source", max_position_embeddings=4096)
        else:
            shape = {"max_position_embeddings": 4096}
            source = save_decoder(folder / "source", "qwen2", shape=shape, template=_GENERATES)
        if kind == "implicit-process":
            options |= {
                "reference": str(save_decoder(folder / "other", "qwen2", shape=shape, seed=5)),
                "beta": 1.0,
            }
        if kind == "generative-judge":
            options["critique_tokens"] = 3
        given = ImportOptions.parse(options)
        checkpoint = Checkpoint(source)
        request = ImportRequest(checkpoint=source, options=given)
        import_checkpoint(checkpoint, recognise(checkpoint, given), folder / "model", request)
        found[kind] = source, folder / "model"
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_reward_by_every_protocol(
    service: Service, project: Project, key: str, http: httpx.Client, folders: Any, kind: str
) -> None:
    source, artifact = folders[kind]
    name = serve_stored(service, project, artifact, "steps")
    reply = http.post(f"/api/v1/rewards/{name}/score", json={"inputs": [{"messages": MESSAGES}]})
    assert reply.status_code == 200, reply.text
    (result,) = reply.json()["results"]
    steps = [step["reward"] for step in result["steps"]]
    if kind == "process-classifier":
        answer = "".join(f"{step}{SEPARATOR}" for step in STEPS)
        chat = [MESSAGES[0], {"role": "assistant", "content": answer}]
        assert steps == pytest.approx(process_classifier_rewards(source, chat), abs=1e-5)
        assert result["reward"] == pytest.approx(math.prod(steps), abs=1e-5)
    else:
        assert sum(steps) == pytest.approx(result["reward"], abs=1e-5)
    written = http.post(f"/api/v1/rewards/{name}/critique", json={"inputs": [{"messages": MESSAGES}]})
    assert (written.status_code == 200) == (kind == "generative-judge"), written.text
    last = {"prompt": TASK, "response": STEPS[0]}
    (one,) = http.post(f"/api/v1/rewards/{name}/score", json={"inputs": [last]}).json()["results"]
    chat = MESSAGES[:2]
    bodies: list[tuple[str, dict[str, Any], Any]] = [
        ("vllm/classify", {"model": name, "messages": chat}, lambda found: found["data"][0]["probs"][0]),
        ("vllm/pooling", {"model": name, "messages": chat}, lambda found: found["data"][0]["data"][-1][0]),
        (
            "vllm/score",
            {"model": name, "text_1": TASK, "text_2": STEPS[0]},
            lambda found: found["data"][0]["score"],
        ),
        (
            "tei/steps/rerank",
            {"query": TASK, "texts": [STEPS[0]], "raw_scores": True},
            lambda found: found[0]["score"],
        ),
        ("slime/steps", {"prompt": TASK, "response": STEPS[0]}, lambda found: found),
        ("llamafactory/steps", {"messages": [f"{TASK}{STEPS[0]}"]}, None),
        (
            "openrlhf/steps/get_reward",
            {"query": [TASK + STEPS[0]], "prompts": [TASK]},
            lambda found: found["rewards"][0],
        ),
    ]
    for path, body, read in bodies:
        answered = http.post(f"/compat/{path}", json=body)
        assert answered.status_code == 200, (path, answered.text)
        if read is not None:
            value = read(answered.json())
            value = value["reward"] if isinstance(value, dict) else value
            assert value == pytest.approx(one["reward"], abs=1e-5), path


def trajectory(number: int, *answers: str) -> Trajectory:
    steps = [Step(source="user", message=(Part(text=f"{TASK} {number}"),))]
    steps += [Step(source="agent", message=(Part(text=answer),)) for answer in answers]
    return Trajectory(steps=tuple(steps), task=Task(id=str(number)))


@pytest.mark.parametrize("kind", KINDS)
def test_their_reports(folders: Any, kind: str) -> None:
    """Step labels, first errors and comparisons are measured on each of them."""
    records: list[Any] = []
    for number in range(12):
        run = trajectory(number, *STEPS[number % 2 :])
        first = number % 2 or None
        records.append(
            StepLabelRecord(trajectory=run, has_first_error=True, first_error=first, annotator="a")
        )
        other = trajectory(number, "Lost.")
        records.append(PreferenceRecord(a=run, b=other, choice="ab"[number % 2], annotator="a"))  # type: ignore[arg-type]
    report = evaluate(RecordScorer(load_scorer(folders[kind][1])), records[8:], validation=records[:8])
    assert report["steps"]["n"] == 8 and report["steps"]["first_error_accuracy"] is not None
    assert (report["steps"]["labels"] is not None) == (kind == "process-classifier")
    assert report["preference"]["n"] == 8
