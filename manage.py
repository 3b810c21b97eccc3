#!/usr/bin/env python3
"""Touchstone's command line: `python manage.py help` lists what it can do."""

import os
import sys
from importlib.util import find_spec


def _option(arguments: list[str], name: str) -> str:
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == name:
            return following
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return ""


def main() -> None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(f"Touchstone needs Python 3.11 to 3.13; {sys.executable} is {version}.")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "apps.config.settings")
    # Threads of torch that wait for one another let others work meanwhile: ours share the machine with each other.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if home := _option(sys.argv[1:], "--home"):  # the settings read it, so it comes before them
        os.environ["TOUCHSTONE_HOME"] = home
    try:
        from django.core.management import execute_from_command_line

        from apps.core.distributions import client_wheel_name, installed_version
        from apps.core.storage import private_files

        private_files.make_private()
        installed_version(), client_wheel_name()  # missing where the code is newer than what was installed
        # The client is no dependency that pip would look up: an index may have another one of that name. Only looked
        # for: importing it takes a sixth of the start of a command.
        if find_spec("touchstone_client") is None:
            raise ModuleNotFoundError("touchstone_client")  # noqa: TRY301
    except ModuleNotFoundError:
        sys.exit(
            f"Touchstone is not installed for {sys.executable}. Run `make install`, then use `.venv/bin/python`."
        )
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
