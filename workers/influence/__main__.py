"""`python -m workers.influence DIR`: see `workers.influence.run`. Status 0: done; 2: refused, with a sentence."""

import argparse
import sys
from pathlib import Path

from workers.errors import RewardError
from workers.influence.run import trace


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workers.influence", description="Which judgements moved a reward."
    )
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    try:
        trace(arguments.folder)
    except RewardError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
