"""The form `adapter`: what was learnt next to a pretrained model, as PEFT reads it."""

import json
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification

from workers.errors import RewardError
from workers.models.exporting import snippets
from workers.models.exporting.model_folder import save_tokenizer
from workers.models.exporting.source import TOLERANCE, ExportOptions, ExportSource, ExportUsage, reward_head
from workers.models.files import WEIGHTS
from workers.models.kinds.decoder import ADAPTER
from workers.models.transformers_loading import transformers_loading

_ROUNDED = 0.1  # of the largest value: what merging into weights of 16 bits may change
_PREFIX = "base_model.model."


def write(source: ExportSource, folder: Path, options: ExportOptions) -> ExportUsage:
    about = source.manifest["adapter"]
    name = options.base_name or about["base"]
    architecture = source.manifest["backbone"]["architecture"]
    prefix = _base_prefix(source)
    tensors = {
        f"{_PREFIX}{prefix}{key}": tensor for key, tensor in load_file(source.folder / ADAPTER).items()
    }
    head = reward_head(source)
    if head.bias:
        raise RewardError(
            "the head of this model has a bias, which that of an adapter has not; take the form 'standalone'.",
            pointer="/format",
        )
    tensors[f"{_PREFIX}score.weight"] = head.weight.unsqueeze(0).contiguous()
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(
        json.dumps(_config(about, name, architecture), indent=2) + "\n"
    )
    pad = AutoConfig.from_pretrained(source.folder, local_files_only=True).pad_token_id
    tokenizer = save_tokenizer(source, folder, pad=pad)
    checked = _check(source, folder, Path(options.base)) if options.base else _unchecked(about["base"])
    return ExportUsage(
        sections=[
            ("How to score", _scoring(source, tokenizer, name, pad)),
            ("What differs from the model in Touchstone", snippets.left_out(source)),
        ],
        library="peft",
        tags=["reward-model", "lora"],
        checked=checked,
    )


def _config(about: dict[str, Any], name: str, architecture: str) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "SEQ_CLS",
        "base_model_name_or_path": name,
        "r": about["rank"],
        "lora_alpha": about["alpha"],
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": architecture == "gpt2",  # whose linear maps are transposed
        "target_modules": about["modules"],
        "modules_to_save": ["score"],
        "inference_mode": True,
    }


def _base_prefix(source: ExportSource) -> str:
    """What the names of the base model begin with within the classifier."""
    with safe_open(source.folder / WEIGHTS, "pt") as weights:
        (prefix,) = {name.partition(".")[0] for name in weights.keys() if not name.startswith("score")}  # noqa: SIM118
    return f"{prefix}."


def _check(source: ExportSource, folder: Path, base: Path) -> str:
    """Raises RewardError where the base is not the one that the adapter was trained on."""
    probe = source.probe
    options: dict[str, Any] = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    dtype = AutoConfig.from_pretrained(source.folder, local_files_only=True).dtype
    try:
        with transformers_loading():
            plain = AutoModelForSequenceClassification.from_pretrained(
                base, num_labels=1, dtype=torch.float32, **options
            )
            model = PeftModel.from_pretrained(plain, str(folder)).eval()
        with torch.no_grad():
            logits = model(input_ids=probe.input_ids).logits
        return probe.require_same(
            logits, "PEFT", tolerance=TOLERANCE if dtype in (None, torch.float32) else _ROUNDED
        )
    except (RewardError, RuntimeError, ValueError, OSError) as error:
        raise RewardError(
            f"the adapter with the weights of {base.name} does not give what the model gives: {base.name} is not what "
            f"it was trained on ({source.manifest['adapter']['base']}), or that was fine-tuned in between. Take the "
            f"form 'transformers'. ({str(error).splitlines()[0]})",
            pointer="/base",
        ) from None


def _unchecked(base: str) -> str:
    return (
        f"not checked, as the folder of the pretrained model ({base}) is not at hand here. Compare a reward before you "
        "rely on it"
    )


def _scoring(source: ExportSource, tokenizer: Any, name: str, pad: int | None) -> str:
    code = snippets.sequence_classifier(source, tokenizer)
    code = code.replace(
        "import torch\nfrom transformers", "import torch\nfrom peft import PeftModel\nfrom transformers"
    )
    code = code.replace(
        "model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()",
        f'base = AutoModelForSequenceClassification.from_pretrained(\n    "{name}", num_labels=1, dtype=torch.float32, '
        f"pad_token_id={pad}\n)\nmodel = PeftModel.from_pretrained(base, folder).eval()",
    )
    about = source.manifest["adapter"]
    rounding = ""
    if about["base_weights"] == "nf4":
        rounding = " It was trained on weights of 4 bits: on those of 16 its rewards are a little off."
    return (
        f"The adapter (rank {about['rank']}) belongs to `{name}`, named `{about['base']}` in training."
        f"{rounding}\n\n{code}"
    )
