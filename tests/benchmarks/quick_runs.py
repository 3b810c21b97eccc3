"""Benchmarks at small sizes, run as `python -m benchmarks.NAME --quick --json` runs them."""

import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import import_scaling
from tests import database

ROOT = Path(__file__).parents[2]


def run_quick(name: str, *options: str) -> dict[str, Any]:
    """What `python -m benchmarks.NAME --quick --json OPTIONS` prints, run here: torch is imported already."""
    output = io.StringIO()
    arguments = patch.object(sys, "argv", [f"benchmarks.{name}", "--quick", "--json", *options])
    with arguments, warnings.catch_warnings(), contextlib.redirect_stdout(output):
        warnings.simplefilter("default")  # as outside of tests
        assert not importlib.import_module(f"benchmarks.{name}").main()
    found: dict[str, Any] = json.loads(output.getvalue())
    return found


def run_quick_process(name: str, *options: str) -> dict[str, Any]:
    """The same as a process: one that makes a database of its own, a copy of the tests', or serves."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--json", *options]
    environment = os.environ | {import_scaling.TEMPLATE: database.template_name()}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
