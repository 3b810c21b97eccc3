"""A model that writes its verdicts, as a causal language model with the prompts it is asked by."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from workers.models.artifact import load_scorer
from workers.models.exporting import servers
from workers.models.exporting.model_folder import copy_text_files, load_back, save_tensors, save_tokenizer
from workers.models.exporting.source import TOLERANCE, ExportSource, ExportUsage, ProbeValues
from workers.models.files import WEIGHTS
from workers.models.generative.judge_renderer import JudgeRenderer
from workers.models.generative.model import KIND as KIND
from workers.models.generative.model import GenerativeModel
from workers.models.generative.verdicts import VerdictRenderer, Words
from workers.prompts.templates import template_parts
from workers.schema import Text

PROMPTS = "verdict_prompts.json"


def write(source: ExportSource, folder: Path) -> ExportUsage:
    """As it is, with PROMPTS."""
    from safetensors import safe_open
    from transformers import AutoConfig

    with safe_open(source.folder / WEIGHTS, "pt") as weights:
        save_tensors(((name, weights.get_tensor(name)) for name in weights.keys()), folder)  # noqa: SIM118
    copy_text_files(source, folder)
    config = AutoConfig.from_pretrained(source.folder, local_files_only=True)
    config.save_pretrained(folder)
    save_tokenizer(source, folder, pad=None)
    model = load_scorer(source.folder)
    assert isinstance(model, GenerativeModel)
    save_prompts(model, folder)
    checked = _check(model, folder)
    return ExportUsage(
        sections=[("How a verdict is read", reading(model)), ("Serving", _serving(source))],
        library="transformers",
        pipeline="text-generation",
        tags=["reward-model", "llm-as-a-judge"],
        checked=checked,
    )


def save_prompts(model: GenerativeModel, folder: Path) -> None:
    """What it is asked, and the words that it answers with: {trajectory, pair: {system, user, words}, mark, ...}; of an
    imported judge what its own file says."""
    renderer = model.renderer
    if isinstance(renderer, JudgeRenderer):
        asked = renderer.judge.to_dict()
    else:
        asked = {
            "trajectory": _own_question("verdict_run", renderer.of_run),
            "pair": _own_question("verdict_pair", renderer.of_pair),
            "mark": renderer.mark,
            "critique_tokens": renderer.critique_tokens,
            "criterion": renderer.criterion,
        }
    text = json.dumps(asked | {"max_tokens": renderer.max_tokens}, indent=2, ensure_ascii=False)
    (folder / PROMPTS).write_text(f"{text}\n", encoding="utf-8")


def _own_question(template: str, words: Words) -> dict[str, Any]:
    system, user = template_parts(template)
    return {"system": system, "user": user, "words": [words.yes, words.no]}


def reading(model: GenerativeModel) -> str:
    renderer = model.renderer
    pair = renderer.of_pair
    by = "" if renderer.criterion is None else f" It judges by: {renderer.criterion}."
    lines = [
        f"`{PROMPTS}` has the prompts. The places in double braces hold a task, an answer, or a trajectory as JSON "
        f"lines; `{{{{by}}}}` a criterion or nothing.{by} Show them by the chat template, with the generation prompt. "
        f"{_answer(renderer)}",
        f"- One trajectory: {_worth(renderer)}",
    ]
    if renderer.compares:
        lines.append(
            f"- Two trajectories: {_after(renderer)}, `{pair.yes}` or `{pair.no}` (ids {pair.yes_id} and "
            f"{pair.no_id}{_before(pair.before)}), asked in both orders. The probability that the first is better is "
            f'the mean of `P("{pair.yes}")` of this order and `P("{pair.no}")` of the other.'
        )
    return "\n\n".join(lines)


def _answer(renderer: VerdictRenderer) -> str:
    if not renderer.critique_tokens:
        return "The model answers with the verdict."
    return (
        f"The model writes a critique of at most {renderer.critique_tokens} tokens (the likeliest ones), then "
        f"`{renderer.mark}` and a verdict; a mark that was not written is added."
    )


def _after(renderer: VerdictRenderer) -> str:
    return f"after `{renderer.mark}`" if renderer.mark else "at the beginning of the answer"


def _worth(renderer: VerdictRenderer) -> str:
    run = renderer.of_run
    if isinstance(renderer, JudgeRenderer) and renderer.points:
        points = ", ".join(f"{point:g} has the id {id_}" for id_, point in renderer.points)
        return (
            f"the raw reward is the expected point, by the softmax over the tokens of the scale {_after(renderer)}: "
            f"{points}{_before(run.before)}."
        )
    return (
        f'the raw reward is `log P("{run.yes}") - log P("{run.no}")` of the word {_after(renderer)}, read where '
        f"their tokens first differ: ids {run.yes_id} and {run.no_id}{_before(run.before)}."
    )


def _before(ids: tuple[int, ...]) -> str:
    return f", after the ids {list(ids)} that both begin with" if ids else ""


def _check(model: GenerativeModel, folder: Path) -> str:
    """The logits of both verdicts after a question."""
    prompt = model.render(Text("It was sent."))
    words = model.renderer.words(prompt)
    ids = [*prompt.ids, *model.renderer.mark_ids, *words.before]
    chosen = [words.yes_id, words.no_id]
    with torch.no_grad():
        ours = model.writer.language(input_ids=torch.tensor([ids])).logits[0, -1, chosen]
        del model
        peer = load_back(folder, AutoModelForCausalLM)
        theirs = peer(input_ids=torch.tensor([ids])).logits[0, -1, chosen]
    return ProbeValues(tuple(ids), ours).require_same(
        theirs, f"transformers' {type(peer).__name__}", tolerance=TOLERANCE
    )


def _serving(source: ExportSource) -> str:
    return f"""**vLLM** {servers.VLLM}: `vllm serve FOLDER --max-model-len {source.max_tokens}`

**SGLang** {servers.SGLANG}: `python -m sglang.launch_server --model-path FOLDER`

Ask `/v1/chat/completions` with `temperature` 0 for the critique, then `/v1/completions` with the critique and the mark
for `logprobs` of the two words."""
