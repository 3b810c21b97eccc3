"""Policies of tau-bench, as they repeat in the system prompts of its trajectories."""

import json
from functools import cache
from typing import Any

from benchmarks.public_data import data_folder

AIRLINE_FILE = "tau_bench/gpt-4o-airline-tasks-0-34.json"
RETAIL_FILE = "agentrx_tau/tau_dataset_full.json"


@cache
def runs_of(name: str) -> list[dict[str, Any]]:
    """name: of the file, whose documents have `traj`, OpenAI messages that begin with the policy."""
    loaded: list[dict[str, Any]] = json.loads((data_folder() / name).read_text(encoding="utf-8"))
    return loaded


def airline_policy() -> str:
    return str(runs_of(AIRLINE_FILE)[0]["traj"][0]["content"])


def retail_policy() -> str:
    return str(runs_of(RETAIL_FILE)[0]["traj"][0]["content"])
