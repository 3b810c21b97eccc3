"""`make docs-check`: runs the code blocks of README and docs; `python -m tests.docs_check [--quick] [PAGE ...]`."""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from tests.docs_check.marked_blocks import MarkedBlock

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="such as docs/client.md; by default all")
    parser.add_argument("--quick", action="store_true", help="without what takes over 30 seconds")
    parser.add_argument("--list", action="store_true", help="count them, and run none")
    chosen = parser.parse_args()
    django.setup()
    from tests.core.homes import open_home
    from tests.docs_check.marked_blocks import marked_blocks
    from tests.docs_check.runs import checked, in_order

    every = list(marked_blocks())
    wanted = [
        block
        for block in in_order([block for block in every if block.runs])
        if not (chosen.quick and block.is_long)
        and (not chosen.pages or block.snippet.page in (*chosen.pages, "README.md", "docs/tutorial.md"))
    ]
    failed = 0
    if not chosen.list:
        with open_home() as home, checked(home, Path(tempfile.mkdtemp(prefix="docs-check-"))) as installation:
            for block in wanted:
                outcome = installation.run(block)
                failed += bool(outcome.error)
                print(
                    f"{'FAILED' if outcome.error else 'ok':6} {outcome.seconds:6.1f} s  {block.snippet}",
                    flush=True,
                )
                if outcome.error:
                    print(outcome.error, flush=True)
    print_counts(every, len(wanted), failed)
    sys.exit(1 if failed else 0)


def print_counts(every: "list[MarkedBlock]", wanted: int, failed: int) -> None:
    from tests.docs_check.marked_blocks import REASONS

    reasons = Counter(block.reason for block in every if block.reason)
    by_tests = sum(bool(block.test) for block in every)
    long = sum(block.is_long for block in every)
    print(f"\n{len(every)} blocks: {wanted} chosen here, {failed} failed; {by_tests} are run by other tests;")
    print(f"{long} take over 30 s (left out by --quick); {reasons.total()} are not run:")
    for reason, count in reasons.most_common():
        print(f"  {count:3} {reason}: {REASONS[reason]}")


if __name__ == "__main__":
    main()
