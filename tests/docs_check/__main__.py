"""`make docs-check`: runs the code blocks of README and docs; `python -m tests.docs_check [--quick] [PAGE ...]`."""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="such as docs/client.md; by default all")
    parser.add_argument(
        "--quick", action="store_true", help="without what takes over 30 seconds, but for `make demo`"
    )
    parser.add_argument("--list", action="store_true", help="count them, and run none")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # the installation is stopped
    django.setup()
    from tests.core.homes import open_home
    from tests.docs_check.marked_blocks import counts, marked_blocks
    from tests.docs_check.pages import FIRST, PROJECTS
    from tests.docs_check.runs import checked, in_order, is_demo

    every = list(marked_blocks())
    pages = set(chosen.pages or (block.snippet.page for block in every))
    # The sample project, and for pages about the project `support` what makes it.
    prepared = {page for page in FIRST if pages - PROJECTS.keys()} - pages
    wanted = [
        block
        for block in in_order([block for block in every if block.runs])
        if is_demo(block)
        or (block.snippet.page in pages and not (chosen.quick and block.is_long))
        or (block.snippet.page in prepared and not block.is_long)
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
        print(f"\n{len(wanted)} blocks were run here, {failed} of them failed.")
    print("\n".join(counts(every)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
