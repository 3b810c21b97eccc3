"""`python -m workers.acquire DIR`: see `workers.acquire.directory`. Status 0: done; 2: refused, with a sentence."""

import argparse
import sys
from pathlib import Path

from workers.acquire.run import acquire
from workers.errors import RewardError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.acquire", description="What to ask people next.")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        acquire(arguments.folder)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
