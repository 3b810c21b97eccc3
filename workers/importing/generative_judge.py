"""Generative judges: any causal language model, with a file of what it is asked.

It writes a critique and gives a verdict, which is read as probabilities of its words (or points of a scale). Without a
file it is asked what Touchstone's own judges are asked.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from workers.errors import RewardError
from workers.importing.causal_models import causal_shapes, require_causal
from workers.importing.checkpoint import Checkpoint
from workers.importing.recognised import Recognised
from workers.importing.tokenizers import copy_tokenizer, longest_input, write_config
from workers.importing.weights import NamedTensor, copy_tensors
from workers.models.backbones.decoder import conversation_renderer
from workers.models.files import WEIGHTS
from workers.models.generative.judge_prompts import JudgePrompts, own_prompts, read_prompts
from workers.models.generative.judge_renderer import JudgeRenderer
from workers.models.generative.model import KIND
from workers.schema.import_options import ImportOptions

TYPE = "generative-judge"
OPTIONS = ("prompts", "critique_tokens")
_GENERATION = "generation_config.json"
_STEP_RULE = "after the critique, at the end of the whole; steps before the last have the reward 0"


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if options.type != TYPE:
        return None
    require_causal(checkpoint, "a judge writes with the LM head of a causal language model")
    judge = _judge(options)
    max_tokens = longest_input(checkpoint, options.max_tokens)
    checkpoint.require_tokenizer()
    if judge.critique_tokens * 2 > max_tokens:
        raise RewardError(
            f"critique_tokens = {judge.critique_tokens} leaves little of max_tokens = {max_tokens} to the "
            "trajectories; set it to half or less.",
            pointer="/options/critique_tokens",
        )
    # Raises RewardError where the words of its verdicts cannot be distinguished.
    JudgeRenderer(conversation_renderer(checkpoint.folder, max_tokens=max_tokens), judge)
    critique = f"a critique of at most {judge.critique_tokens} tokens, then " if judge.critique_tokens else ""
    return Recognised(
        type=TYPE,
        architecture=checkpoint.architecture,
        because=f"the type was named; config.json names {checkpoint.architecture}, a causal language model",
        labels=judge.run.scale or judge.run.verdicts,
        reward=_reward_words(judge),
        template=f"its own chat template with the questions of {judge.name}",
        reads=f"after {critique}the mark {judge.mark!r}" if judge.mark else "at the beginning of the answer",
        parameters=checkpoint.parameters,
        bytes=checkpoint.bytes,
        max_tokens=max_tokens,
        licence=checkpoint.licence,
        notes=_notes(judge),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    judge = _judge(options)
    copy_tensors(
        [NamedTensor(name, checkpoint.tensors[name]) for name in causal_shapes(checkpoint)], folder / WEIGHTS
    )
    copy_tokenizer(checkpoint, folder)
    write_config(checkpoint.config, folder)
    generation = checkpoint.folder / _GENERATION
    if generation.is_file():  # which tokens end an answer
        (folder / _GENERATION).write_bytes(generation.read_bytes())
    return {
        "backbone": {"kind": KIND, "architecture": str(checkpoint.config.get("model_type")), "lora_rank": 0},
        "heads": {"ensemble": 1},
        "judge": judge.to_dict(),
        "text": {
            "max_tokens": found.max_tokens,
            "speakers": False,
            "critique_tokens": judge.critique_tokens,
            "prompts": [judge.name],
        },
        "step_rule": _STEP_RULE,
        "objective": "generative",
        "criteria": {},
        "aggregation": "sum",
        "reward_from": "verdict",
    }


def _judge(options: ImportOptions) -> JudgePrompts:
    judge = read_prompts(Path(options.prompts)) if options.prompts else own_prompts()
    return replace(judge, critique_tokens=options.critique_tokens) if options.critique_tokens else judge


def _reward_words(judge: JudgePrompts) -> str:
    if judge.run.scale:
        return f"the expected point on the scale {', '.join(judge.run.scale)}"
    good, bad = judge.run.verdicts
    return f"the log-odds of {good!r} against {bad!r}"


def _notes(judge: JudgePrompts) -> tuple[str, ...]:
    notes = ["A critique is the likeliest one, so that a reward is always the same."]
    if judge.pair is None:
        notes.append("Two trajectories are compared by their rewards: the file has no question about a pair.")
    else:
        notes.append("Two trajectories are compared in both orders, and the probabilities averaged.")
    if "{{run}}" not in judge.run.user:
        notes.append(
            "Answers stand in the question as plain text, so what an agent writes could address the judge; {{run}} "
            "quotes it."
        )
    return tuple(notes)
