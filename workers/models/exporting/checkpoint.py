"""Models that came as checkpoints of other makers, and keep their layout: they leave in it, fine-tuned or not."""

import json
import shutil
from pathlib import Path
from typing import Any

import transformers
from safetensors import safe_open
from transformers import AutoConfig

from workers.errors import RewardError
from workers.models.exporting import serving, snippets
from workers.models.exporting.model_folder import class_shapes, copy_text_files, load_back, save_tensors
from workers.models.exporting.source import ExportSource, ExportUsage
from workers.models.files import WEIGHTS

KINDS = ("classifier", "gated-decoder", "process-decoder")
_VALUE_HEAD = "v_head."


def write(source: ExportSource, folder: Path) -> ExportUsage:
    with safe_open(source.folder / WEIGHTS, "pt") as weights:
        names = [*weights.keys()]
        save_tensors(((name, weights.get_tensor(name)) for name in names), folder)
    shutil.copyfile(source.folder / "config.json", folder / "config.json")
    copy_text_files(source, folder)
    architecture = _architecture(source.folder)
    return ExportUsage(
        sections=[
            ("How to score", _scoring(source, architecture)),
            ("Serving", serving.checkpoint(source, architecture)),
        ],
        library="transformers",
        pipeline="token-classification" if source.kind == "process-decoder" else "text-classification",
        tags=["reward-model"],
        checked=_check(folder, architecture, names),
    )


def _architecture(folder: Path) -> str:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return str((config.get("architectures") or [""])[0])


def _check(folder: Path, architecture: str, names: list[str]) -> str:
    kind = getattr(transformers, architecture, None)
    has_value_head = any(name.startswith(_VALUE_HEAD) for name in names)
    if kind is None or has_value_head:
        what = f"{architecture} with a value head" if has_value_head else architecture
        return (
            f"not loaded, as transformers {transformers.__version__} has no {what}; its {len(names)} tensors "
            "are those of the artifact"
        )
    known = {name for name, _ in class_shapes(AutoConfig.from_pretrained(folder, local_files_only=True))}
    if others := [name for name in names if name not in known]:
        return (
            f"not loaded, as transformers' {architecture} does not read {others[0]}, which its maker's code reads; "
            f"its {len(names)} tensors are those of the artifact"
        )
    model = load_back(folder, kind)
    return f"transformers' {type(model).__name__} reads all {len(names)} tensors, which are those of the artifact"


def _scoring(source: ExportSource, architecture: str) -> str:
    imported = source.manifest.get("imported") or {}
    facts = {
        "Class": f"`{architecture}`"
        + ("" if hasattr(transformers, architecture) else ", by the code of its maker"),
        "Text": imported.get("template"),
        "Read": imported.get("reads") or source.manifest.get("step_rule"),
        "Reward": imported.get("reward"),
        "Came from": " ".join(str(imported[key]) for key in ("source", "revision") if imported.get(key))
        or None,
    }
    known = "\n".join(f"- **{name}**: {value}" for name, value in facts.items() if value)
    if not known:
        raise RewardError("the model does not tell how it is read; import it again.")
    return f"{known}\n\n{snippets.normalisation(source)}"
