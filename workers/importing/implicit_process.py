"""Implicit process reward models: a causal language model that was trained as a policy, and the one it began as.

A step's reward is beta times the log-ratio of the two over the tokens that the agent wrote (Yuan et al. 2024, arXiv
2412.01981; PRIME, arXiv 2502.01456). Both models are loaded, so twice the memory is needed.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from workers.errors import RewardError
from workers.importing.causal_models import causal_shapes, require_causal
from workers.importing.checkpoint import Checkpoint
from workers.importing.comparison import compare_rewards
from workers.importing.process_models import (
    AGGREGATIONS,
    chosen,
    tokenizer_of,
)
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import copy_tokenizer, longest_input, write_config
from workers.importing.weights import NamedTensor, copy_tensors
from workers.models.artifact import LocalScorer
from workers.models.files import WEIGHTS
from workers.models.kinds.implicit_process import (
    KIND,
    REFERENCE_CONFIG,
    REFERENCE_WEIGHTS,
    STEP_RULE,
    span_renderer,
)
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text import AgentSpans

TYPE = "implicit-process"
OPTIONS = ("reference", "beta", "aggregation")
DEFAULT_BETA = 0.05  # of PRIME
_SUM = "sum"


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if options.type != TYPE:
        return None
    reference = _reference(checkpoint, options)
    for model in (checkpoint, reference):
        require_causal(
            model, "an implicit process reward is read off the LM heads of two causal language models"
        )
    if tokenizer_of(checkpoint).get_vocab() != tokenizer_of(reference).get_vocab():
        raise RewardError(
            f"{reference.folder.name} has another vocabulary than {checkpoint.folder.name}, so their probabilities are "
            "not of the same tokens; name the model that the policy was trained from.",
            pointer="/options/reference",
        )
    max_tokens = min(longest_input(model, options.max_tokens) for model in (checkpoint, reference))
    renderer = span_renderer(checkpoint.folder, max_tokens)
    aggregation = _aggregation(options)
    notes = [
        "Both models are loaded when it is served: memory for "
        f"{(checkpoint.parameters + reference.parameters) / 1e9:.2f} billion parameters.",
        "What tools and users say is not scored; token ids and texts are scored from their second token on.",
    ]
    if not options.beta:
        notes.append(f"beta is {DEFAULT_BETA}, as in PRIME; set it to that of the training.")
    if renderer.rewrites:
        notes.append(
            "The template changes what earlier steps look like: their tokens are those of the last rendering."
        )
    return Recognised(
        type=TYPE,
        architecture=checkpoint.architecture,
        because=f"the type was named; both models are {checkpoint.architecture}",
        reward=f"of a step, {_beta(options):g} times the log-ratio of {checkpoint.folder.name} to "
        f"{reference.folder.name} over its tokens; of a trajectory, the {aggregation} of its steps",
        template="its own chat template, each agent step tokenised as a policy writes it",
        reads=STEP_RULE,
        parameters=checkpoint.parameters + reference.parameters,
        bytes=checkpoint.bytes + reference.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=tuple(notes),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    reference = _reference(checkpoint, options)
    for model, path in ((checkpoint, folder / WEIGHTS), (reference, folder / REFERENCE_WEIGHTS)):
        copy_tensors([NamedTensor(name, model.tensors[name]) for name in causal_shapes(model)], path)
    write_config(reference.config, folder)
    (folder / "config.json").rename(folder / REFERENCE_CONFIG)
    write_config(checkpoint.config, folder)
    copy_tokenizer(checkpoint, folder)
    return {
        "backbone": {
            "kind": KIND,
            "architecture": str(checkpoint.config.get("model_type")),
            "beta": _beta(options),
            "reference": reference.folder.name,
        },
        "heads": {"ensemble": 1},
        "text": {"max_tokens": found.max_tokens, "speakers": False},
        "step_rule": STEP_RULE,
        "objective": "process",
        "criteria": {},
        "aggregation": _aggregation(options),
        "reward_from": "state",
    }


def check(checkpoint: Checkpoint, scorer: LocalScorer, options: ImportOptions) -> dict[str, Any]:
    reference = _reference(checkpoint, options)

    def load() -> Any:
        return torch.nn.ModuleList(_load(model) for model in (checkpoint, reference))

    def reward(models: Any, item: AgentSpans) -> torch.Tensor:
        first, second = (_log_probs(model, item) for model in models)
        steps = [
            _beta(options) * (first[start - 1 : end - 1] - second[start - 1 : end - 1]).sum()
            for start, end in item.kept_spans
        ]
        return _aggregated(torch.stack(steps), _aggregation(options))

    return compare_rewards(checkpoint, scorer, load, reward)


def _load(checkpoint: Checkpoint) -> Any:
    with transformers_loading():
        return AutoModelForCausalLM.from_pretrained(
            checkpoint.folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
        ).eval()


def _log_probs(model: Any, item: AgentSpans) -> torch.Tensor:
    """[tokens - 1]: of every token but the first."""
    ids = torch.tensor([item.ids])
    logits = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
    found: torch.Tensor = logits.gather(-1, ids[0, 1:].unsqueeze(-1)).squeeze(-1)
    return found


def _aggregated(steps: torch.Tensor, aggregation: str) -> torch.Tensor:
    if aggregation == "last":
        return steps[-1]
    if aggregation == "min":
        return steps.amin()
    if aggregation == "product":
        return steps.prod()
    return steps.mean() if aggregation == "mean" else steps.sum()


def _reference(checkpoint: Checkpoint, options: ImportOptions) -> Checkpoint:
    if not options.reference:
        raise RewardError(
            "an implicit process reward is the ratio of two models; name the folder of the one that the policy was "
            "trained from with reference.",
            pointer="/options/reference",
        )
    return Checkpoint(Path(options.reference))


def _beta(options: ImportOptions) -> float:
    return options.beta or DEFAULT_BETA


def _aggregation(options: ImportOptions) -> str:
    return chosen(options, "aggregation", (_SUM, *AGGREGATIONS), _SUM)
