"""The command line of a job that works on a folder: `python -m workers.PART DIR`."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from workers.errors import RewardError


def command(part: str, description: str, work: Callable[[Path], object]) -> int:
    """The exit status: 0 done; 2 refused, with a sentence on standard error."""
    parser = argparse.ArgumentParser(prog=f"python -m workers.{part}", description=description)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        work(arguments.folder)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0
