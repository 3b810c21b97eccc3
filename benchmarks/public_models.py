"""Public reward models by name: what to type, what the import recognises, and how much memory each takes.

`python -m benchmarks.public_models --write` makes the tables of docs/models.md from the configurations in
`public_configs` and the recognisers of `workers.importing`. No weights are needed, and none were: nothing on that page
was run. `python -m benchmarks.public_models --check FOLDER [--device cuda] [--option NAME=VALUE]` imports a folder,
scores a fixed conversation with the engine and with transformers' own class, and prints the difference.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.docs_writer import write_between
from benchmarks.public_checkpoints import PublicModel, public_models, shapes, write_folder
from workers.errors import RewardError
from workers.importing import Checkpoint, recognise
from workers.importing.comparison import probe_chats
from workers.importing.importer import ImportRequest, import_checkpoint
from workers.models.artifact import load_scorer
from workers.schema.decoder_estimate import RESERVE
from workers.schema.import_options import ImportOptions

_DOCS = Path(__file__).parents[1] / "docs" / "models.md"
REFERENCE = "REFERENCE"  # stands on the page for a folder
TOKENS = 8192  # of one forward pass, for the memory of activations
_FLAGS = {"type": "as"}  # options that a flag names otherwise
_WORDS = {
    "llama-3": "Llama 3",
    "chatml": "ChatML (Qwen)",
    "gemma": "Gemma",
    "mistral": "Mistral",
    "tulu": "Tulu",
    "": "none",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """type: as recognised, empty where it is refused, with the reason. parameters: with the head."""

    model: PublicModel
    type: str
    refusal: str
    reward: str
    parameters: int
    float32: float
    bfloat16: float


def examine(model: PublicModel, folder: Path) -> KnownModel:
    """By the recognisers, on a folder with the shapes of the model."""
    type_ = refusal = reward = ""
    options = dict(model.options)
    if "reference" in options:  # a model of the same shapes
        options["reference"] = str(write_folder(model, folder / REFERENCE))
    try:
        found = recognise(Checkpoint(write_folder(model, folder / "model")), ImportOptions.parse(options))
        type_, reward = found.type, found.reward.replace("of model to", "of the model to")
    except RewardError as error:
        refusal = error.message.replace("model is", "it is", 1)
    parameters = sum(torch.Size(shape).numel() for shape in shapes(model).values())
    parameters *= 1 + ("reference" in options)
    float32, bfloat16 = (memory(model, parameters, size) for size in (4, 2))
    return KnownModel(
        model=model,
        type=type_,
        refusal=refusal,
        reward=reward,
        parameters=parameters,
        float32=float32,
        bfloat16=bfloat16,
    )


def memory(model: PublicModel, parameters: int, size: int) -> float:
    """Bytes to score: weights, what a layer computes for TOKENS tokens, and RESERVE. size: bytes of a number.

    A layer without gradients holds its input, normalised input, queries, keys, values and attention output (6 h) or
    the three tensors of its perceptron (2 h + 3 i), whichever is more.
    """
    hidden = int(model.config["hidden_size"])
    layer = max(6 * hidden, 2 * hidden + 3 * int(model.config["intermediate_size"]))
    return RESERVE[0] * size * (parameters + TOKENS * layer) + RESERVE[1]


def examine_all() -> list[KnownModel]:
    with tempfile.TemporaryDirectory() as scratch:
        return [examine(model, Path(scratch) / str(n)) for n, model in enumerate(public_models())]


def command(model: PublicModel) -> str:
    flags = [f"--{_FLAGS.get(key, key).replace('_', '-')} {value}" for key, value in model.options.items()]
    return " ".join([f"import_model PROJECT hf://{model.name}", *flags])


def table(found: Sequence[KnownModel]) -> list[str]:
    """Of those that are recognised."""
    lines = [
        "| model | parameters | what to type | type | memory, bfloat16 / float32 | template | licence |",
        "|---|--:|---|---|--:|---|---|",
    ]
    for known in found:
        if known.type:
            model = known.model
            lines.append(
                f"| {model.name} | {_billions(known.parameters)} | `{command(model)}` | `{known.type}` | "
                f"{known.bfloat16 / 1e9:.0f} / {known.float32 / 1e9:.0f} GB | {_WORDS[model.template]} | "
                f"{model.licence or 'see its card'} |"
            )
    return lines


def refusals(found: Sequence[KnownModel]) -> list[str]:
    lines = ["| model | parameters | class in config.json | why not |", "|---|--:|---|---|"]
    for known in found:
        if not known.type:
            model = known.model
            needs_code = (
                "needs the code of its folder, which is never run" if "auto_map" in model.config else ""
            )
            why = " ".join(filter(None, [f"{needs_code}." if needs_code else "", *model.notes]))
            lines.append(
                f"| {model.name} | {_billions(known.parameters)} | `{model.architecture}` | "
                f"{why or known.refusal} |"
            )
    return lines


def sources(found: Sequence[KnownModel]) -> list[str]:
    lines = ["| model | reward | source of its shapes | reconstructed | notes |", "|---|---|---|---|---|"]
    for known in found:
        model = known.model
        notes = " ".join(model.notes) if known.type else ""
        lines.append(
            f"| {model.name} | {known.reward or '-'} | {model.source} | {model.reconstructed or 'nothing'} | {notes} |"
        )
    return lines


def write_page(found: Sequence[KnownModel], path: Path = _DOCS) -> None:
    for name, lines in (("models", table), ("models.refused", refusals), ("models.sources", sources)):
        write_between(path, name, lines(found))


def check(folder: Path, options: ImportOptions, device: str) -> dict[str, Any]:
    """Import the folder, and score fixed conversations. Raises RewardError where it cannot be imported, or gives other
    rewards than transformers' own class."""
    with tempfile.TemporaryDirectory() as scratch:
        checkpoint = Checkpoint(folder)
        found = recognise(checkpoint, options)
        request = ImportRequest(checkpoint=folder, options=options, device=device)
        artifact = Path(scratch) / "model"
        manifest = import_checkpoint(checkpoint, found, artifact, request)
        started = time.perf_counter()
        scorer = load_scorer(artifact, device=device)
        rendered = [scorer.render(chat) for chat in probe_chats()]
        scores = [score.raw for score in scorer.score(rendered)]
        peak = torch.cuda.max_memory_allocated() if device.startswith("cuda") else None
        return {
            "recognised": found.as_json(),
            "compared": manifest["imported"]["check"],
            "rewards": scores,
            "seconds": time.perf_counter() - started,
            "peak_memory": peak,
        }


def _billions(parameters: int) -> str:
    return f"{parameters / 1e9:.2f} B"


def _options(given: Sequence[str]) -> ImportOptions:
    pairs = [text.partition("=") for text in given]
    return ImportOptions.parse({name: int(text) if text.isdecimal() else text for name, _, text in pairs})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_models", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/models.md")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="import and compare a real folder")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the import")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    if given.check is not None:
        try:
            print(json.dumps(check(given.check, _options(given.option), given.device), indent=2))
        except RewardError as error:
            print(error.message, file=sys.stderr)
            return 1
        return 0
    found = examine_all()
    print("\n".join([*table(found), "", *refusals(found), "", *sources(found)]))
    if given.write:
        write_page(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
