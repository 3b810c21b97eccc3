"""The forms in which models are exported, and which kinds of models have which. Without torch, for the web process.

The code of a form is in `workers.models.exporting`; a kind of model that is added gets a line in each form it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workers.errors import RewardError

ANY = "*"  # in `kinds`: whatever is not named
OUT_TYPES = ("f32", "f16", "bf16", "q8_0")  # of a GGUF file
_GGUF_ARCHITECTURES = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class ExportForm:
    """name: as commands take it. kinds: what a model becomes, by the kind of its backbone. loaded_by: whose code loads
    it, and by which call."""

    name: str
    title: str
    about: str
    kinds: Mapping[str, str]
    loaded_by: str

    def becomes(self, kind: str) -> str | None:
        return self.kinds.get(kind, self.kinds.get(ANY))


EXPORT_FORMS: dict[str, ExportForm] = {
    form.name: form
    for form in (
        ExportForm(
            "artifact",
            "Artifact",
            "The files of the model as Touchstone keeps them, for another installation.",
            {ANY: "everything: all heads, criteria, out-of-distribution detector"},
            "Touchstone, `import_model`",
        ),
        ExportForm(
            "transformers",
            "Hugging Face transformers",
            "A folder of a Hugging Face model with its tokenizer and chat template: transformers, TRL, vLLM, SGLang.",
            {
                "decoder": "`*ForSequenceClassification` with one label: the mean of the heads",
                "generative": "`*ForCausalLM`, and the prompts of its verdicts",
                "classifier": "the class it came as, with all of its labels",
                "gated-decoder": "the checkpoint in its maker's layout, for their code",
                "process-decoder": "the checkpoint in its maker's layout",
                "implicit-process": "two folders, `*ForCausalLM`: policy and reference",
            },
            "`AutoModelForSequenceClassification.from_pretrained`; `AutoModelForCausalLM` of one that writes",
        ),
        ExportForm(
            "token-classifier",
            "Token classifier",
            "A process reward model: read at the last token of each agent step, it gives the value of the step.",
            {"decoder": "`*ForTokenClassification` with one label: the mean of the heads"},
            "`AutoModelForTokenClassification.from_pretrained`",
        ),
        ExportForm(
            "adapter",
            "LoRA adapter",
            "The low-rank adapter alone, of a few megabytes, for the pretrained model that it was trained on.",
            {"decoder": "a PEFT adapter (`SEQ_CLS`) with its `score` head"},
            "`peft.PeftModel.from_pretrained`",
        ),
        ExportForm(
            "gguf",
            "GGUF",
            "One file for llama.cpp, in 32, 16 or 8 bits.",
            {
                "decoder": "a ranking model (Qwen3), or a pooled model with its head in a JSON file (Llama, Qwen2)",
                "generative": "a language model, and the prompts of its verdicts",
            },
            "`llama-server`, `gguf.GGUFReader`",
        ),
        ExportForm(
            "standalone",
            "Python package",
            "The model with the code that reads and scores trajectories, as one Python package that needs no server.",
            {
                ANY: "everything: steps, criteria, spread of the heads, out-of-distribution score",
            },
            "`from touchstone_model import load`",
        ),
    )
}


def export_form(name: str) -> ExportForm:
    """Raises RewardError for an unknown one."""
    if name not in EXPORT_FORMS:
        raise RewardError(
            f"{name!r} is not a form of export; choose from {', '.join(EXPORT_FORMS)}.", pointer="/format"
        )
    return EXPORT_FORMS[name]


def refusal(form: ExportForm, manifest: Mapping[str, Any]) -> str | None:
    """Why a model, by its manifest, has no such form; None where it has."""
    backbone = _object(manifest, "backbone")
    kind = str(backbone.get("kind") or "")
    if form.becomes(kind) is None:
        others = [other.name for other in EXPORT_FORMS.values() if other.becomes(kind) is not None]
        return f"A model of the kind {kind!r} has no form {form.name!r}; it has {', '.join(others)}."
    if kind == "decoder":
        return _decoder_refusal(form.name, manifest, str(backbone.get("architecture") or ""))
    if form.name == "gguf" and backbone.get("architecture") not in _GGUF_ARCHITECTURES:
        return _no_gguf(str(backbone.get("architecture") or ""))
    return None


def require_form(name: str, manifest: Mapping[str, Any]) -> ExportForm:
    """The form of this name. Raises RewardError where it is unknown, or the model does not have it."""
    form = export_form(name)
    if (reason := refusal(form, manifest)) is not None:
        raise RewardError(reason, pointer="/format")
    return form


def forms_of(manifest: Mapping[str, Any]) -> list[ExportForm]:
    """The forms that a model has."""
    return [form for form in EXPORT_FORMS.values() if refusal(form, manifest) is None]


def _decoder_refusal(form: str, manifest: Mapping[str, Any], architecture: str) -> str | None:
    reads_end = manifest.get("aggregation") == "value" and manifest.get("reward_from", "scalar") == "scalar"
    if form in ("transformers", "adapter", "gguf") and not reads_end:
        return (
            f"The form {form!r} reads a model once, at the end of a trajectory, and the reward of this one is made of "
            "all its steps. Take 'token-classifier', which gives the value of each step, or 'standalone'."
        )
    if form == "adapter" and not manifest.get("adapter"):
        return (
            "This model has no adapter: it was trained without `lora_rank`, or by a version that kept only "
            "the merged weights. Take 'transformers', or train again with `lora_rank`."
        )
    whole = _object(_object(manifest, "text"), "whole")
    if form == "token-classifier" and whole.get("appended"):
        return (
            "This model is read at a token that is put after each step for that reading alone, which no token "
            "classifier does. Take 'transformers', or 'standalone'."
        )
    if form == "gguf" and architecture not in _GGUF_ARCHITECTURES:
        return _no_gguf(architecture)
    return None


def _no_gguf(architecture: str) -> str:
    known = ", ".join(_GGUF_ARCHITECTURES)
    return f"GGUF files are written of the architectures {known}, and this model is a {architecture or 'unknown'} one."


def _object(manifest: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = manifest.get(key)
    return dict(value) if isinstance(value, Mapping) else {}
