#!/usr/bin/env python3
"""Touchstone's command line: `python manage.py help` lists what it can do."""

import sys


def main() -> None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"Touchstone needs Python 3.11 to 3.13; {sys.executable} is {version}.")
    from apps.core.command_line import run_command_line

    run_command_line(sys.argv)


if __name__ == "__main__":
    main()
