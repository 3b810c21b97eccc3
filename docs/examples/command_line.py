"""The command-line options of all examples: the address of the endpoint, and the key."""

import argparse
import os


def argument_parser(
    description: str | None, *, server: str = "the reward service", seed: int | None = None
) -> argparse.ArgumentParser:
    """description: the module's docstring. seed: its default; None for examples without random numbers."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--url", required=True, help=f"address of {server}")
    parser.add_argument("--endpoint", default="desk")
    known = os.environ.get("TOUCHSTONE_KEY")
    parser.add_argument("--key", default=known, required=not known, help="by default TOUCHSTONE_KEY")
    if seed is not None:
        parser.add_argument("--seed", type=int, default=seed)
    return parser
