"""Process reward models that answer with a word: causal language models that are read at a tag after each step.

`plain`: Math-Shepherd (arXiv 2312.08935): "Step 1: ... ки", read at the tag as P(+) against P(-). `turns`: RLHFlow
(RLHFlow/Llama3.1-8B-PRM-Deepseek-Data): each step is a message of the user that is answered by + or -. Such a
checkpoint looks like any language model, so this type has to be named.
"""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.comparison import compare_rewards
from workers.importing.process_models import (
    AGGREGATIONS,
    STEP_OPTIONS,
    STEP_VALUES,
    ProcessForm,
    base_prefix,
    base_shapes,
    chosen,
    convert_process,
    decoder_config,
    recognised_process,
    step_token,
    tokenizer_of,
)
from workers.importing.recognised import Recognised
from workers.importing.step_logits import step_reward
from workers.models.artifact import LocalScorer
from workers.models.transformers_loading import transformers_loading
from workers.schema.import_options import ImportOptions
from workers.text import StepFormat, Tokens

TYPE = "step-tag"
OPTIONS = (*STEP_OPTIONS, "step_layout", "good_label", "bad_label")
_LAYOUTS = ("plain", "turns")
_LM_HEAD = "lm_head.weight"
_GOOD, _BAD = "+", "-"
# Of a configuration: what changes logits behind the LM head, so that two rows of it are not all there is.
_SCALED = ("final_logit_softcapping", "logit_scale", "logits_scaling")


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised | None:
    if options.type != TYPE:
        return None
    form = _form(checkpoint, options)
    good, bad = _words(options)
    return recognised_process(
        checkpoint,
        form,
        options,
        type_=TYPE,
        because=f"the type was named; config.json names {checkpoint.architecture}, a causal language model",
        labels=(good, bad),
        notes=(f"The word {good!r} is a good step, {bad!r} a bad one (good_label, bad_label).",),
    )


def convert(
    checkpoint: Checkpoint, found: Recognised, folder: Path, options: ImportOptions
) -> dict[str, Any]:
    return convert_process(checkpoint, _form(checkpoint, options), found, folder)


def check(checkpoint: Checkpoint, scorer: LocalScorer, options: ImportOptions) -> dict[str, Any]:
    form = _form(checkpoint, options)

    def load() -> Any:
        with transformers_loading():
            return AutoModelForCausalLM.from_pretrained(
                checkpoint.folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
            ).eval()

    def reward(model: Any, tokens: Tokens) -> torch.Tensor:
        logits = model(input_ids=torch.tensor([tokens.ids])).logits[0]
        return step_reward(logits[tokens.places][:, list(form.rows or ())], form)

    return compare_rewards(checkpoint, scorer, load, reward)


def _form(checkpoint: Checkpoint, options: ImportOptions) -> ProcessForm:
    if checkpoint.architecture not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        raise RewardError(
            f"config.json names {checkpoint.architecture or 'no architecture'}, and a step tag is read with the LM "
            "head of a causal language model; import it as another type.",
            pointer="/options/type",
        )
    config = decoder_config(checkpoint)
    if scaled := [name for name in _SCALED if getattr(config.get_text_config(decoder=True), name, None)]:
        raise RewardError(
            f"{checkpoint.architecture} changes its logits ({', '.join(scaled)}), which is not known to this type of "
            "import; import a model of the Llama, Mistral or Qwen type."
        )
    prefix, shapes = base_prefix(config), base_shapes(config)
    embeddings = next(name for name in shapes if "embed_tokens" in name or name == "wte.weight")
    is_tied = bool(getattr(config, "tie_word_embeddings", False)) and _LM_HEAD not in checkpoint.tensors
    wanted = {prefix + name: shape for name, shape in shapes.items()}
    checkpoint.require_tensors(wanted if is_tied else wanted | {_LM_HEAD: shapes[embeddings]})
    tokenizer = tokenizer_of(checkpoint)
    layout = chosen(options, "step_layout", _LAYOUTS, "plain")
    return ProcessForm(
        form=TYPE,
        steps=_steps(options, layout, tokenizer),
        prefix=prefix,
        head=[(prefix + embeddings if is_tied else _LM_HEAD, "")],
        layers=[2],
        classes=("good", "bad"),
        rows=_rows(options, layout, tokenizer),
        aggregation=chosen(options, "aggregation", AGGREGATIONS, "min" if layout == "plain" else "mean"),
        step_value=chosen(options, "step_value", STEP_VALUES, "probability"),
    )


def _steps(options: ImportOptions, layout: str, tokenizer: PreTrainedTokenizerBase) -> StepFormat:
    if layout == "turns":
        if options.step_token:
            raise RewardError(
                "step_token means nothing where each step is a message of the user (step_layout = turns); leave it "
                "out.",
                pointer="/options/step_token",
            )
        return StepFormat(layout="turns", answer=_words(options)[0])
    if not options.step_token:
        raise RewardError(
            "name the tag that stands after each step with step_token, as the model's card says (Math-Shepherd: ки), "
            "or set step_layout = turns for a model that answers each step as a message.",
            pointer="/options/step_token",
        )
    return StepFormat(
        layout="plain",
        separator=f" {step_token(options, '', tokenizer)}",
        after_task=" ",
        before_step="Step {n}: ",
        after_step="\n",
        whole=True,
    )


def _rows(options: ImportOptions, layout: str, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens of the two words: as they stand in a text, or as an answer begins."""
    good, bad = _words(options)
    texts = (good, f"{good} {bad}" if layout == "plain" else bad)
    ids = [id_ for text in texts for id_ in tokenizer.encode(text, add_special_tokens=False)[-1:]]
    if len(set(ids)) < len(texts):
        raise RewardError(
            f"{good!r} and {bad!r} do not end with different tokens in this model's vocabulary; name others with "
            "good_label and bad_label.",
            pointer="/options/good_label",
        )
    return ids


def _words(options: ImportOptions) -> tuple[str, str]:
    return options.good_label or _GOOD, options.bad_label or _BAD
