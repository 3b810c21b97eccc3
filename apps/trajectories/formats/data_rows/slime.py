"""Samples of slime, as its rollouts hold and dump them: {"prompt", "response", "tokens", "response_length", "label",
"reward", "loss_mask", "status", "metadata", ...}, one by one or as {"rollout_id", "samples": [...]}.

`label` is the reference answer of the task. Token ids, masks and log probabilities are left out.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.formats.data_rows.rendered import read_rendered
from apps.trajectories.formats.data_rows.row_trajectories import (
    OUTCOME_READ,
    answer_messages,
    row_trajectory,
)
from apps.trajectories.formats.data_rows.trainer_rows import message_column
from workers.schema import Trajectory, clean
from workers.schema.decode import finite, require_list, require_object

SIGN = "an object with `prompt`, `response` and `response_length` (or `loss_mask`), or a list of these as `samples`"
_OF_TOKENS = "numbers of single tokens; the response is their text"
_TOKENS = ("tokens", "loss_mask", "rollout_log_probs", "teacher_log_probs", "rollout_routed_experts")
LEFT_OUT = {f"/{name}": _OF_TOKENS for name in _TOKENS}
READ = (*OUTCOME_READ, "/prompt", "/response", "/label")
_COMMON = ("rollout_id",)


def sniff(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    samples = document.get("samples")
    sample = samples[0] if isinstance(samples, list) and samples else document
    return (
        isinstance(sample, dict)
        and {"prompt", "response"} <= sample.keys()
        and bool({"response_length", "loss_mask", "rollout_log_probs"} & sample.keys())
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    document = require_object(document)
    if "samples" not in document:
        yield "", document
        return
    common = {name: value for name, value in document.items() if name != "samples"}
    for index, sample in enumerate(require_list(document["samples"], pointer="/samples")):
        at = f"/samples/{index}"
        yield at, common | require_object(sample, pointer=at)


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    prompt, response, label, reward = (row.get(name) for name in ("prompt", "response", "label", "reward"))
    about: dict[str, Any] = {}
    rendered = None
    if isinstance(prompt, str) and isinstance(response, str):
        rendered = read_rendered(prompt, response)
    if rendered is None:
        asked, answer = message_column(row, "prompt"), answer_messages(row, "response")
    else:
        asked, answer, about = rendered.prompt, rendered.answer, rendered.about
    known = ["prompt", "response", *_TOKENS, *(["label"] if isinstance(label, str) else [])]
    if isinstance(reward, dict):
        about = about | {"rewards": reward}
    return row_trajectory(
        asked,
        answer,
        row,
        known=known,
        pointer="/response",
        reference=label,
        reward=None if isinstance(reward, dict) else finite(reward, pointer="/reward"),
        metadata=about,
    )
