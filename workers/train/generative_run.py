"""The training of a generative reward model, in one process."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.device import choose_device, peak_memory
from workers.errors import RewardError
from workers.schema.recipe import Recipe
from workers.train.events import EventLogWriter
from workers.train.run_directory import RunConfig


def train_generative_run(
    folder: Path, config: RunConfig, recipe: Recipe, stop: Callable[[], bool]
) -> dict[str, Any]:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise RewardError(
            "a generative reward model is trained by one process; set `processes` to 1.", pointer="/processes"
        )
    from workers.train.generative.pipeline import train_generative  # decoders take seconds to import

    device = choose_device(config.device)
    events = EventLogWriter(folder / "events.jsonl")
    try:
        report = train_generative(folder, config, recipe, device, events, stop)
    finally:
        events.close()
    report["train"]["peak_memory"] = peak_memory(device)
    return report
