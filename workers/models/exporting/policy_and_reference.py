"""An implicit process reward model, as the two causal language models that it is the ratio of."""

import shutil
from pathlib import Path

from safetensors import safe_open
from transformers import AutoModelForCausalLM

from workers.models.exporting import snippets
from workers.models.exporting.model_folder import copy_text_files, load_back, save_tensors
from workers.models.exporting.source import ExportSource, ExportUsage
from workers.models.files import WEIGHTS
from workers.models.kinds.implicit_process import KIND as KIND
from workers.models.kinds.implicit_process import REFERENCE_CONFIG, REFERENCE_WEIGHTS

PARTS = {"policy": (WEIGHTS, "config.json"), "reference": (REFERENCE_WEIGHTS, REFERENCE_CONFIG)}


def write(source: ExportSource, folder: Path) -> ExportUsage:
    """Folders `policy` and `reference`, each with the tokenizer."""
    classes = []
    for name, (weights, config) in PARTS.items():
        part = folder / name
        part.mkdir()
        with safe_open(source.folder / weights, "pt") as file:
            save_tensors(((tensor, file.get_tensor(tensor)) for tensor in file.keys()), part)  # noqa: SIM118
        shutil.copyfile(source.folder / config, part / "config.json")
        copy_text_files(source, part)
        classes.append(type(load_back(part, AutoModelForCausalLM)).__name__)
    beta = source.manifest["backbone"]["beta"]
    return ExportUsage(
        sections=[
            (
                "How to score",
                f"The reward of a step is {beta:g} times the sum, over the tokens that the agent wrote in it, of the "
                "log-probability that `policy` gives less the one that `reference` gives.\n\n"
                f"{snippets.normalisation(source)}",
            )
        ],
        library="transformers",
        pipeline="text-generation",
        tags=["reward-model", "process-reward-model"],
        checked=f"transformers' {' and '.join(classes)} read all tensors, which are those of the artifact",
    )
