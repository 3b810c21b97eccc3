#!/usr/bin/env python3
"""Touchstone's command line: `python manage.py help` lists what it can do."""

import os
import sys


def _option(arguments: list[str], name: str) -> str:
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == name:
            return following
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return ""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    if home := _option(sys.argv[1:], "--home"):  # the settings read it, so it comes before them
        os.environ["TOUCHSTONE_HOME"] = home
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
