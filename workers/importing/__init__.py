"""Public reward models as artifacts: one file for each type of them.

A type's file has OPTIONS, the names of the import options that it reads, and two functions:

recognise(checkpoint, options) -> Recognised | None: whether the checkpoint is of the type, by its configuration, its
tokenizer and the headers of its weights. Raises RewardError where it is, but cannot be used.
convert(checkpoint, recognised, folder, options) -> dict: write the files of an artifact, and return its part of the
manifest: backbone, heads, text, step_rule, objective, aggregation, reward_from, criteria and, where servers may compute
it, probe.

Optionally check(checkpoint, scorer, options) -> dict: compare the loaded artifact with the model's own code on some
inputs, and return what was compared, see `comparison`. Raises RewardError where they differ.

To add a type: its file, its name in TYPES of workers.schema.import_options, and there the options it reads.
"""

from importlib import import_module
from typing import Any

from workers.errors import RewardError
from workers.importing.checkpoint import Checkpoint
from workers.importing.recognised import Recognised
from workers.schema.import_options import TYPES, ImportOptions


def type_module(name: str) -> Any:
    return import_module(f"workers.importing.{name.replace('-', '_')}")


def recognise(checkpoint: Checkpoint, options: ImportOptions) -> Recognised:
    """By `options.type`, or the first type that fits. Raises RewardError where none does."""
    for name in (options.type,) if options.type else TYPES:
        if (found := type_module(name).recognise(checkpoint, options)) is not None:
            options.require_only(name, type_module(name).OPTIONS)
            return found
    architecture = checkpoint.architecture or "no architecture"
    raise RewardError(
        f"{checkpoint.folder.name} is not recognised as a reward model: config.json names {architecture}"
        + (", whose own code is not run" if "auto_map" in checkpoint.config else "")
        + (
            f"; it is none of the type {options.type}."
            if options.type
            else f". Known types are {', '.join(TYPES)}."
        )
    )


__all__ = ["TYPES", "Checkpoint", "ImportOptions", "Recognised", "recognise", "type_module"]
