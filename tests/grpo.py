"""TRL's settings of a run of a few steps on a CPU."""

from pathlib import Path
from typing import Any


def grpo_config(folder: Path, **fields: Any) -> Any:
    from trl import GRPOConfig

    quick = {"logging_steps": 1, "save_strategy": "no", "report_to": "none"}
    here = {"use_cpu": True, "bf16": False, "dataloader_pin_memory": False}
    return GRPOConfig(output_dir=str(folder), **quick, **here, **fields)
