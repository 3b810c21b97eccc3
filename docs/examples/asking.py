"""What all examples are told: where the endpoint is, and the key to it."""

import argparse
import os


def asking(
    said: str | None, *, of: str = "the reward service", seed: int | None = None
) -> argparse.ArgumentParser:
    """said: the module's docstring. seed: its default, None for what throws no dice."""
    parser = argparse.ArgumentParser(
        description=said, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--url", required=True, help=f"of {of}")
    parser.add_argument("--endpoint", default="desk")
    known = os.environ.get("TOUCHSTONE_KEY")
    parser.add_argument("--key", default=known, required=not known, help="TOUCHSTONE_KEY without")
    if seed is not None:
        parser.add_argument("--seed", type=int, default=seed)
    return parser
